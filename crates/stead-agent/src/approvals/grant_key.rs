//! The key with which a person's grants are sealed, so that those that come with a
//! folder from elsewhere do not count.
//!
//! Effects: none.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// The key with which a person's grants are sealed.
#[derive(Clone)]
pub struct GrantKey([u8; 32]);

/// Where a person's [`GrantKey`] is kept, outside of every workspace.
pub trait GrantKeys: fmt::Debug + Send + Sync {
    /// Returns the key; none if nothing was sealed yet.
    fn key(&self) -> Result<Option<GrantKey>, String>;

    /// Returns the key, and makes it if there is none.
    fn key_or_new(&self) -> Result<GrantKey, String>;
}

/// The key is not shown.
impl fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantKey")
    }
}

impl GrantKey {
    /// Returns the key of these random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the seal of a text.
    pub(crate) fn seal(&self, text: &[u8]) -> String {
        let code = self.code(text).finalize().into_bytes();
        code.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a text was sealed with this key.
    pub(crate) fn is_seal_of(&self, text: &[u8], seal: &str) -> bool {
        let digits = seal.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.map(byte).collect();
        bytes.is_some_and(|bytes| self.code(text).verify_slice(&bytes).is_ok())
    }

    fn code(&self, text: &[u8]) -> Hmac<Sha256> {
        // A short key is filled up to a block.
        let mut block = [0; 64];
        block
            .iter_mut()
            .zip(self.0)
            .for_each(|(to, from)| *to = from);
        Hmac::<Sha256>::new(&block.into()).chain_update(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_belongs_to_one_text_and_one_key() {
        let key = GrantKey::new([7; 32]);
        let seal = key.seal(b"text");
        assert!(key.is_seal_of(b"text", &seal));
        assert!(!key.is_seal_of(b"texts", &seal));
        assert!(!GrantKey::new([8; 32]).is_seal_of(b"text", &seal));
        for broken in ["", "zz", &seal[..62], &format!("{seal}00"), "é"] {
            assert!(!key.is_seal_of(b"text", broken), "{broken}");
        }
    }
}
