//! Stands in for the drivers that are not built in: says how to build them.
//!
//! Effects: none.

#[cfg(not(all(feature = "mysql", feature = "postgres")))]
use {super::super::driver::Driver, crate::StoreError, std::sync::Arc};

#[cfg(not(feature = "mysql"))]
pub(in super::super) fn mysql(_url: &str) -> Result<Arc<dyn Driver>, StoreError> {
    Err(StoreError::not_built_in("MySQL and MariaDB", "mysql"))
}

#[cfg(not(feature = "postgres"))]
pub(in super::super) fn postgres(_url: &str) -> Result<Arc<dyn Driver>, StoreError> {
    Err(StoreError::not_built_in("PostgreSQL", "postgres"))
}

#[cfg(not(feature = "postgres"))]
pub(in super::super) fn postgres_bus(
    _url: &str,
    _driver: Arc<dyn Driver>,
    _place: String,
) -> Result<Arc<dyn crate::Bus>, StoreError> {
    Err(StoreError::not_built_in("PostgreSQL", "postgres"))
}
