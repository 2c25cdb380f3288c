//! Redaction: removing known secrets from text before it is written anywhere.
//!
//! Effects: none.

use memchr::memmem::Finder;

/// Shorter values are not redacted, because replacing them would garble ordinary text.
const MIN_SECRET_BYTES: usize = 6;

/// The known secrets, and the only way to remove them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The secrets as they appear in JSON text (escaped), longest first so that none remains inside
    /// another.
    secrets: Vec<(String, &'static str)>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

const MASK: &str = "[redacted]";

impl Redactor {
    /// Returns a redactor for `secrets`, both as they are and as they appear inside JSON strings.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        for secret in secrets.into_iter().filter(|s| s.len() >= MIN_SECRET_BYTES) {
            let quoted = serde_json::Value::String(secret.clone()).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            // Multi-line secrets also leak with joined lines or escaped twice (JSON inside JSON).
            let twice = serde_json::Value::String(escaped.clone()).to_string();
            known.push((twice[1..twice.len() - 1].to_owned(), MASK));
            known.push((escaped, MASK));
            known.push((secret, MASK));
        }
        known.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        known.dedup();
        Self { secrets: known }
    }

    /// Returns `text` without any known secret; borrowed if it contains none.
    pub fn redact<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        let mut out = std::borrow::Cow::Borrowed(text);
        for (secret, mask) in &self.secrets {
            if out.contains(secret.as_str()) {
                out = std::borrow::Cow::Owned(out.replace(secret.as_str(), mask));
            }
        }
        out
    }

    /// Like [`Self::redact`] for owned text, which is returned as it is if it contains no secret.
    pub fn redact_owned(&self, text: String) -> String {
        match self.redact(&text) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(cleaned) => Some(cleaned),
        }
        .unwrap_or(text)
    }

    /// Returns a redactor for bytes that arrive in pieces.
    pub fn stream(&self) -> RedactStream {
        let finders = self
            .secrets
            .iter()
            .map(|(secret, _)| Finder::new(secret).into_owned());
        RedactStream {
            finders: finders.collect(),
            held: Vec::new(),
        }
    }
}

/// Redacts a stream: the end of each piece is held back as long as it may be the beginning of a
/// secret.
pub struct RedactStream {
    /// One finder for each secret, longest first.
    finders: Vec<Finder<'static>>,
    held: Vec<u8>,
}

impl std::fmt::Debug for RedactStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedactStream({} secrets)", self.finders.len())
    }
}

impl RedactStream {
    /// Takes a piece and returns the redacted bytes that are complete now.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        if self.finders.is_empty() {
            return std::borrow::Cow::Borrowed(piece);
        }
        self.held.extend_from_slice(piece);
        let end = self.held.len() - self.begun_bytes();
        std::borrow::Cow::Owned(self.take_redacted(end))
    }

    /// Returns the redacted rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take_redacted(self.held.len())
    }

    /// Returns how many of the last bytes may be the beginning of a secret.
    fn begun_bytes(&self) -> usize {
        let begun = self.finders.iter().filter_map(|finder| {
            let secret = finder.needle();
            let first = secret.first()?;
            let longest = self.held.len().min(secret.len() - 1);
            let end = &self.held[self.held.len() - longest..];
            let mut starts = memchr::memchr_iter(*first, end);
            starts.find_map(|at| secret.starts_with(&end[at..]).then_some(end.len() - at))
        });
        begun.max().unwrap_or(0)
    }

    /// Returns the held bytes up to `end`, or further if a secret continues there.
    fn take_redacted(&mut self, end: usize) -> Vec<u8> {
        let mut clean = Vec::with_capacity(end);
        let mut at = 0;
        while let Some((start, len)) = self.first_secret(at).filter(|(start, _)| *start < end) {
            clean.extend_from_slice(&self.held[at..start]);
            clean.extend_from_slice(MASK.as_bytes());
            at = start + len;
        }
        let end = end.max(at);
        clean.extend_from_slice(&self.held[at..end]);
        self.held.drain(..end);
        clean
    }

    /// Returns the position and length of the next secret, the longest if several begin there.
    fn first_secret(&self, from: usize) -> Option<(usize, usize)> {
        let rest = &self.held[from..];
        let found = self
            .finders
            .iter()
            .filter_map(|finder| Some((from + finder.find(rest)?, finder.needle().len())));
        found.min_by_key(|(start, len)| (*start, std::cmp::Reverse(*len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_gone_plain_escaped_and_doubly_escaped() {
        let secret = "sk-\"quoted\"\\n-1234".to_owned();
        let redactor = Redactor::new([secret.clone(), "ab".to_owned()]);
        let once = serde_json::to_string(&secret).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        for text in [secret, once, twice] {
            let clean = redactor.redact(&text).into_owned();
            assert!(clean.contains(MASK) && !clean.contains("1234"), "{clean}");
        }
        assert!(matches!(
            redactor.redact("ab stays"),
            std::borrow::Cow::Borrowed(_)
        ));
    }

    #[test]
    fn a_secret_is_gone_wherever_a_stream_is_cut() {
        let redactor = Redactor::new([
            "secret".to_owned(),
            "secret-longer".to_owned(),
            "longer-yet".to_owned(),
        ]);
        let text = "x secret-longer y secret z secre \u{fffd} secret-longe secret";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut stream = redactor.stream();
                let bytes = text.as_bytes();
                let mut clean = stream.push(&bytes[..first]).into_owned();
                clean.extend_from_slice(&stream.push(&bytes[first..second]));
                clean.extend_from_slice(&stream.push(&bytes[second..]));
                clean.extend(stream.finish());
                let want = "x [redacted] y [redacted] z secre \u{fffd} [redacted]-longe [redacted]";
                assert_eq!(
                    String::from_utf8(clean).unwrap(),
                    want,
                    "cut at {first} and {second}"
                );
            }
        }
        let mut stream = redactor.stream();
        assert_eq!(&*stream.push(b"plain text"), b"plain text", "not held back");
        assert_eq!(&*stream.push(b" and sec"), b" and ");
        assert_eq!(&*stream.push(b"ond"), b"second");
        let mut nothing = Redactor::default().stream();
        assert!(matches!(
            nothing.push(b"as it is"),
            std::borrow::Cow::Borrowed(b"as it is")
        ));
        assert_eq!(nothing.finish(), b"");
    }

    #[test]
    fn a_secret_inside_a_longer_one_leaves_no_rest() {
        let redactor = Redactor::new(["secret".to_owned(), "secret-longer".to_owned()]);
        assert_eq!(
            redactor.redact("x secret-longer y secret"),
            "x [redacted] y [redacted]"
        );
    }
}
