//! Printing YAML in a form that all parsers read alike.
//!
//! Effects: none.

use super::YamlValue;
use std::fmt::{self, Write};

/// Plain words that some parsers do not read as text.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// Prints the value as a document: maps and lists as blocks of lines.
impl fmt::Display for YamlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match as_scalar(self) {
            Ok(scalar) => writeln!(f, "{scalar}"),
            Err(YamlBlock::List(items)) => write_list(f, items, 0),
            Err(YamlBlock::Map(map)) => write_map(f, map, YamlIndent::all(0)),
        }
    }
}

/// A collection that is printed on lines of its own.
enum YamlBlock<'a> {
    List(&'a [YamlValue]),
    Map(&'a [(String, YamlValue)]),
}

/// Returns the text of a value that fits on one line, or else its block.
fn as_scalar(value: &YamlValue) -> Result<String, YamlBlock<'_>> {
    Ok(match value {
        YamlValue::Null => "null".to_owned(),
        YamlValue::Bool(value) => value.to_string(),
        YamlValue::Int(value) => value.to_string(),
        YamlValue::Float(value) => float(*value),
        YamlValue::Text(text) => quoted(text),
        YamlValue::List(items) if items.is_empty() => "[]".to_owned(),
        YamlValue::Map(map) if map.is_empty() => "{}".to_owned(),
        YamlValue::List(items) => return Err(YamlBlock::List(items)),
        YamlValue::Map(map) => return Err(YamlBlock::Map(map)),
    })
}

/// The number of spaces before the lines of a map.
#[derive(Clone, Copy)]
struct YamlIndent {
    first: usize,
    rest: usize,
}

impl YamlIndent {
    fn all(spaces: usize) -> Self {
        Self {
            first: spaces,
            rest: spaces,
        }
    }

    /// The indentation of a map whose first line continues one that is already begun.
    fn after_first(spaces: usize) -> Self {
        Self {
            first: 0,
            rest: spaces,
        }
    }
}

fn write_map(out: &mut dyn Write, map: &[(String, YamlValue)], indent: YamlIndent) -> fmt::Result {
    for (at, (key, value)) in map.iter().enumerate() {
        let blank = if at == 0 { indent.first } else { indent.rest };
        write!(out, "{:blank$}{}:", "", quoted(key))?;
        match as_scalar(value) {
            Ok(scalar) => writeln!(out, " {scalar}")?,
            Err(YamlBlock::List(items)) => {
                out.write_char('\n')?;
                write_list(out, items, indent.rest)?;
            }
            Err(YamlBlock::Map(map)) => {
                out.write_char('\n')?;
                write_map(out, map, YamlIndent::all(indent.rest + 2))?;
            }
        }
    }
    Ok(())
}

fn write_list(out: &mut dyn Write, items: &[YamlValue], indent: usize) -> fmt::Result {
    for item in items {
        write!(out, "{:indent$}-", "")?;
        match as_scalar(item) {
            Ok(scalar) => writeln!(out, " {scalar}")?,
            Err(YamlBlock::Map(map)) => {
                out.write_char(' ')?;
                write_map(out, map, YamlIndent::after_first(indent + 2))?;
            }
            Err(YamlBlock::List(items)) => {
                out.write_char('\n')?;
                write_list(out, items, indent + 2)?;
            }
        }
    }
    Ok(())
}

/// Formats a text, in quotes if a parser could read it as something else, such as a date.
fn quoted(text: &str) -> String {
    let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./ ".contains(c);
    let word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    if first && !word && !text.ends_with(' ') && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Line ends and other characters that cannot be printed.
            c if c.is_control()
                || matches!(
                    c,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ) =>
            {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a number with its decimal point, without which some parsers read `1e20` as text.
fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let digits = if digits.contains('.') {
                digits.to_owned()
            } else {
                format!("{digits}.0")
            };
            let sign = if power.starts_with('-') { "" } else { "+" };
            format!("{digits}e{sign}{power}")
        }
        None => text,
    }
}
