//! Decoding ANSI-C quoting, `$'…'`, in command lines.
//!
//! Effects: none.

/// Decodes `$'…'`, where `rest` is the text after `$'`. Returns the text and its length in bytes
/// with the closing quote, or none if the quote is not closed.
///
/// The text is `None` if it contains an escape that bash treats specially (control characters,
/// bytes).
pub(super) fn decode(rest: &str) -> Option<(Option<String>, usize)> {
    let mut text = Some(String::new());
    let mut chars = rest.char_indices();
    loop {
        let (at, c) = chars.next()?;
        let piece = match c {
            '\'' => return Some((text, at + 1)),
            '\\' => escape(&mut chars)?,
            plain => Some(plain),
        };
        text = text.zip(piece).map(|(mut text, piece)| {
            text.push(piece);
            text
        });
    }
}

/// Decodes one escape. The outer `None` means the end of the text.
fn escape(chars: &mut std::str::CharIndices<'_>) -> Option<Option<char>> {
    let (_, c) = chars.next()?;
    Some(match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        '\\' | '\'' | '"' | '?' => Some(c),
        'x' => number(chars, 16, 2, 0),
        'u' => number(chars, 16, 4, 0),
        'U' => number(chars, 16, 8, 0),
        '0'..='7' => number(chars, 8, 2, c.to_digit(8).unwrap_or_default()),
        _ => None,
    })
}

/// Reads at most `most` digits. Only visible ASCII characters are decoded.
fn number(
    chars: &mut std::str::CharIndices<'_>,
    radix: u32,
    most: usize,
    first: u32,
) -> Option<char> {
    let mut value = first;
    for _ in 0..most {
        let Some(digit) = chars.clone().next().and_then(|(_, c)| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = value.saturating_mul(radix).saturating_add(digit);
    }
    char::from_u32(value).filter(|c| c.is_ascii_graphic() || *c == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_where_that_is_certain() {
        let cases = [
            (r"rm' x", Some("rm"), 3),
            (r"\x72\155' x", Some("rm"), 9),
            (r"a\'b'", Some("a'b"), 5),
            (r"a\\' ; rm '", Some("a\\"), 4),
            (r"\u0072m'", Some("rm"), 8),
            (r"a\nb'", Some("a\nb"), 5),
            (r"a\0b'", None, 5),
            (r"\cA'", None, 4),
            (r"\xff'", None, 5),
        ];
        for (rest, text, length) in cases {
            assert_eq!(
                decode(rest),
                Some((text.map(str::to_owned), length)),
                "{rest}"
            );
        }
        assert_eq!(decode(r"never\'"), None);
    }
}
