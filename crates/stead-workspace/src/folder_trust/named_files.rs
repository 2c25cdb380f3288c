//! The files that a command may name.
//!
//! Effects: none.

/// The maximum number of words of a command that are looked up as files.
pub(crate) const MAX_NAMED_FILES: usize = 256;

/// Returns the words of a command line that may be names of files: see [`named_in_words`].
pub(crate) fn named_in_line(line: &str) -> Vec<String> {
    let script = stead_shell::parse(line);
    let parts = script.parts.iter();
    let words = parts.flat_map(|part| part.words.iter().filter_map(|word| word.known()));
    let parsed = words.map(str::to_owned);
    // A line that is too unusual to be parsed is split at everything that ends a word.
    let split = line.split(|c: char| c.is_whitespace() || ";|&()<>\"'`".contains(c));
    named_in_words(parsed.chain(split.map(str::to_owned)).collect())
}

/// Returns the words that may be names of files, also behind `--option=` and below a folder that a
/// variable names: `$DIR/scripts/x.sh`.
pub(crate) fn named_in_words(words: Vec<String>) -> Vec<String> {
    let values = words.iter().filter_map(|word| word.split_once('='));
    let values: Vec<String> = values.map(|(_, value)| value.to_owned()).collect();
    let mut all: Vec<String> = words.into_iter().chain(values).collect();
    let below = all.iter().filter(|word| word.starts_with('$'));
    let below = below.filter_map(|word| word.split_once('/'));
    let below: Vec<String> = below.map(|(_, rest)| rest.to_owned()).collect();
    all.extend(below);
    all.retain(|word| !word.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_may_be_a_file_is_found() {
        for (line, name) in [
            ("sh run.sh", "run.sh"),
            ("env A=1 python3 'my tool.py' --x", "my tool.py"),
            ("true && x --config=conf/a.json", "conf/a.json"),
            ("cat a | ./b.sh", "./b.sh"),
            ("\"$STEAD_WORKSPACE/scripts/c.sh\"", "scripts/c.sh"),
            ("${DIR}/d.sh", "d.sh"),
            ("eval \"$(cat e.sh)\"", "e.sh"),
            ("sh < f.sh", "f.sh"),
        ] {
            let words = named_in_line(line);
            assert!(words.iter().any(|word| word == name), "{line}: {words:?}");
        }
    }
}
