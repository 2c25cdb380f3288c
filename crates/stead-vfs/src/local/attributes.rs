//! What a file keeps when it is replaced by a new one: permission bits, owner and group, extended
//! attributes (among them access control lists).
//!
//! Effects: the local disk (writes).

use super::root::READING;
use super::write::EntryLocation;
use rustix::fs::{Mode, OFlags, Stat};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use stead_store::Disk;

/// The most bytes of the names, and of one value, that Linux allows.
const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

/// The attributes of a file that is to be replaced.
#[derive(Debug)]
pub(super) struct FileAttributes {
    mode: u32,
    owner: u32,
    group: u32,
    extended: Vec<(CString, Vec<u8>)>,
}

impl FileAttributes {
    /// Reads the attributes of the file at `place`. Extended ones that cannot be read are left out.
    pub(super) fn of(place: &EntryLocation, stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode & 0o7777,
            owner: stat.st_uid,
            group: stat.st_gid,
            extended: extended_attributes(place).unwrap_or_default(),
        }
    }

    /// Gives `file` these attributes. Without the rights to give it another owner or an extended
    /// attribute, it stays without them.
    pub(super) fn apply(&self, disk: &dyn Disk, file: &File) -> io::Result<()> {
        for (name, value) in &self.extended {
            let _ = disk.set_attribute(file, name, value);
        }
        let own = rustix::fs::fstat(file)?;
        if (own.st_uid, own.st_gid) != (self.owner, self.group) {
            let _ = disk.set_owner(file, self.owner, self.group);
        }
        // Last: a change of the owner clears bits.
        disk.set_mode(file, self.mode)
    }
}

fn extended_attributes(place: &EntryLocation) -> rustix::io::Result<Vec<(CString, Vec<u8>)>> {
    let flags = READING | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&place.dir, place.name(), flags, Mode::empty())?;
    // Almost no file has any.
    if let Ok(0) = rustix::fs::flistxattr(&file, &mut [0_u8; 64]) {
        return Ok(Vec::new());
    }
    let mut buffer = vec![0_u8; MAX_ATTRIBUTE_BYTES];
    let len = rustix::fs::flistxattr(&file, &mut buffer[..])?;
    let names: Vec<CString> = buffer[..len]
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok().map(CStr::to_owned))
        .collect();
    let mut attributes = Vec::new();
    for name in names {
        let len = rustix::fs::fgetxattr(&file, &name, &mut buffer[..])?;
        attributes.push((name, buffer[..len].to_vec()));
    }
    Ok(attributes)
}
