//! Part of the tokenizer: normalising characters, without case, accents and widths.
//!
//! Effects: none.

use unicode_normalization::UnicodeNormalization;

/// Returns whether `c` belongs to a script without spaces between words.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c as u32,
        0x0E00..=0x0EFF       // Thai, Lao
        | 0x1000..=0x109F     // Myanmar
        | 0x1100..=0x11FF     // Hangul letters
        | 0x1780..=0x17FF     // Khmer
        | 0x3005..=0x3007
        | 0x3040..=0x309A | 0x309D..=0x30FA | 0x30FC..=0x30FF // Kana, without the marks that stand alone
        | 0x3105..=0x318F     // Bopomofo, Hangul letters
        | 0x31A0..=0x31BF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xA960..=0xA97F | 0xAC00..=0xD7FF // Hangul
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFFDC     // Kana and Hangul of half width
        | 0x1AFF0..=0x1B16F   // Kana
        | 0x20000..=0x323AF)
}

/// Returns whether `c` is a mark on the letter before it that people often do not type.
pub(super) fn is_ignored_mark(c: char) -> bool {
    matches!(c as u32, 0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200C..=0x200D | 0x20D0..=0x20FF | 0xFE20..=0xFE2F)
        || unicode_normalization::char::is_combining_mark(c)
}

fn is_accent(c: char) -> bool {
    // Marks of other scripts are vowels and distinguish words.
    matches!(c as u32, 0x0300..=0x036F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200C..=0x200D | 0x20D0..=0x20FF | 0xFE20..=0xFE2F)
}

/// Normalises a character of a script without spaces.
pub(super) fn normalize_ideograph(c: char) -> String {
    std::iter::once(c).nfkc().collect()
}

/// Normalises a letter or digit.
pub(super) fn normalize_letter(c: char) -> String {
    if c.is_ascii() {
        return c.to_ascii_lowercase().to_string();
    }
    let mut out = String::new();
    for plain in std::iter::once(c)
        .nfkd()
        .filter(|c| !is_accent(*c))
        .flat_map(char::to_lowercase)
    {
        match plain {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'ø' => out.push('o'),
            'đ' | 'ð' => out.push('d'),
            'ł' => out.push('l'),
            'ı' => out.push('i'),
            'þ' => out.push_str("th"),
            'ς' => out.push('σ'),
            plain if plain.is_alphanumeric() || is_ignored_mark(plain) && !is_accent(plain) => {
                out.push(plain)
            }
            // A compatibility character may decompose into non-letters: `½` is `1⁄2`.
            _ => {}
        }
    }
    out
}
