//! Server-sent events.

use stead_model::SseParser;

/// An event: its name and its data.
type SseEvent = (String, String);

/// Asserts that the events are those of a simple parser that has the whole text, and the same
/// however the bytes are split into pieces.
pub fn sse(data: &[u8]) {
    let whole = parse(&[data]);
    assert_eq!(whole, reference(data), "as the reference");
    let bytes: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(whole, parse(&bytes), "byte by byte");
    let split = data.len() / 2;
    assert_eq!(
        whole,
        parse(&[&data[..split], &[], &data[split..]]),
        "in two pieces"
    );
    let length = usize::from(data.first().copied().unwrap_or_default() % 7) + 2;
    let pieces: Vec<&[u8]> = data.chunks(length).collect();
    assert_eq!(whole, parse(&pieces), "in pieces of {length} bytes");
}

fn parse(pieces: &[&[u8]]) -> Vec<SseEvent> {
    let mut events = Vec::new();
    let mut sink = |event: &str, data: &str| {
        events.push((event.to_owned(), data.to_owned()));
        Ok(())
    };
    let mut parser = SseParser::default();
    let result = pieces
        .iter()
        .try_for_each(|piece| parser.push(piece, &mut sink))
        .and_then(|()| parser.finish(&mut sink));
    assert!(result.is_ok(), "an input of this size is taken: {result:?}");
    events
}

/// Parses a whole stream as the standard describes it. Unlike there, an event that the stream ends
/// with counts.
fn reference(data: &[u8]) -> Vec<SseEvent> {
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    let mut events = Vec::new();
    let mut name = String::new();
    let mut lines: Vec<String> = Vec::new();
    for line in stream_lines(data) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.is_empty() {
            if !lines.is_empty() {
                events.push((name, lines.join("\n")));
            }
            name = String::new();
            lines.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "event" => name = value,
            "data" => lines.push(value),
            _ => {}
        }
    }
    if !lines.is_empty() {
        events.push((name, lines.join("\n")));
    }
    events
}

/// Splits a stream at `\r\n`, `\n` and `\r`.
fn stream_lines(data: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![Vec::new()];
    let mut after_cr = false;
    for byte in data {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            other => {
                if let Some(line) = lines.last_mut() {
                    line.push(*other);
                }
            }
        }
        after_cr = *byte == b'\r';
    }
    // The last line is only a line if something is on it.
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}
