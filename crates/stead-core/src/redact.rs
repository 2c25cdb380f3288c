//! Removes known secrets from text before it is written anywhere.

/// Shorter values are left alone: replacing them would garble ordinary text.
const MIN_SECRET_BYTES: usize = 6;

/// The secrets of a process, and the one way to remove them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// As they appear in JSON text (escaped), longest first so that none survives inside another.
    secrets: Vec<(String, &'static str)>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

const MASK: &str = "[redacted]";

impl Redactor {
    /// Knows `secrets`, both as they are and as they look inside JSON strings.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        for secret in secrets.into_iter().filter(|s| s.len() >= MIN_SECRET_BYTES) {
            let quoted = serde_json::Value::String(secret.clone()).to_string();
            let escaped = quoted[1..quoted.len() - 1].to_owned();
            // Multi-line secrets also leak line-joined or escaped twice (JSON inside JSON).
            let twice = serde_json::Value::String(escaped.clone()).to_string();
            known.push((twice[1..twice.len() - 1].to_owned(), MASK));
            known.push((escaped, MASK));
            known.push((secret, MASK));
        }
        known.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
        known.dedup();
        Self { secrets: known }
    }

    /// `text` without any known secret; borrowed when there is none in it.
    pub fn clean<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        let mut out = std::borrow::Cow::Borrowed(text);
        for (secret, mask) in &self.secrets {
            if out.contains(secret.as_str()) {
                out = std::borrow::Cow::Owned(out.replace(secret.as_str(), mask));
            }
        }
        out
    }

    /// The same for text that is owned: given back as it is when there is no secret in it.
    pub fn clean_owned(&self, text: String) -> String {
        match self.clean(&text) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(cleaned) => Some(cleaned),
        }
        .unwrap_or(text)
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
            let clean = redactor.clean(&text).into_owned();
            assert!(clean.contains(MASK) && !clean.contains("1234"), "{clean}");
        }
        assert!(matches!(redactor.clean("ab stays"), std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn a_secret_inside_a_longer_one_leaves_no_rest() {
        let redactor = Redactor::new(["secret".to_owned(), "secret-longer".to_owned()]);
        assert_eq!(redactor.clean("x secret-longer y secret"), "x [redacted] y [redacted]");
    }
}
