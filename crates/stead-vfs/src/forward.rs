//! The macro that forwards the reading half of [`Vfs`](crate::Vfs) to the file system below.
//!
//! Effects: none.

/// Implements the methods of [`Vfs`](crate::Vfs) that change nothing by calling the file system in
/// the field `$inner`. For file systems that treat only changes in a special way.
macro_rules! forward_reads {
    ($inner:ident) => {
        fn stat<'a>(
            &'a self,
            path: &'a $crate::VPath,
        ) -> futures_util::future::BoxFuture<'a, Result<$crate::Stat, $crate::VfsError>> {
            self.$inner.stat(path)
        }

        fn list<'a>(
            &'a self,
            path: &'a $crate::VPath,
        ) -> futures_util::future::BoxFuture<'a, Result<Vec<$crate::DirEntry>, $crate::VfsError>> {
            self.$inner.list(path)
        }

        fn read<'a>(
            &'a self,
            path: &'a $crate::VPath,
            range: $crate::ReadRange,
        ) -> futures_util::future::BoxFuture<
            'a,
            Result<(bytes::Bytes, $crate::Version), $crate::VfsError>,
        > {
            self.$inner.read(path, range)
        }

        fn read_lines<'a>(
            &'a self,
            path: &'a $crate::VPath,
            range: $crate::LineRange,
        ) -> futures_util::future::BoxFuture<'a, Result<$crate::LineWindow, $crate::VfsError>> {
            self.$inner.read_lines(path, range)
        }

        fn walk<'a>(
            &'a self,
            path: &'a $crate::VPath,
            after: Option<&'a $crate::VPath>,
            limit: usize,
        ) -> futures_util::future::BoxFuture<'a, Result<$crate::Walk, $crate::VfsError>> {
            self.$inner.walk(path, after, limit)
        }

        fn resolve<'a>(
            &'a self,
            path: &'a $crate::VPath,
        ) -> futures_util::future::BoxFuture<'a, Result<$crate::VPath, $crate::VfsError>> {
            self.$inner.resolve(path)
        }

        fn search(&self) -> &dyn $crate::Search {
            self.$inner.search()
        }
    };
}

pub(crate) use forward_reads;
