//! An incremental parser of server-sent events (WHATWG HTML, section 9.2.6). No I/O.
//!
//! Effects: none.

use crate::ModelError;

/// The maximum length of a line, and of the data of one event.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Takes bytes in pieces of any size and returns whole events, independent of where the pieces are
/// split.
///
/// ```
/// use stead_model::SseParser;
///
/// let mut events = Vec::new();
/// let mut sink = |event: &str, data: &str| {
///     events.push(format!("{event}: {data}"));
///     Ok(())
/// };
/// let mut parser = SseParser::default();
/// parser.push(b"event: delta\nda", &mut sink)?;
/// parser.push(b"ta: hello\n\n", &mut sink)?;
/// parser.finish(&mut sink)?;
/// assert_eq!(events, ["delta: hello"]);
/// # Ok::<(), stead_model::ModelError>(())
/// ```
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    event: String,
    data: String,
    has_data: bool,
    after_cr: bool,
    after_first_line: bool,
}

/// Receives one event: its name (empty if it has none) and its data.
pub type EventSink<'a> = &'a mut dyn FnMut(&str, &str) -> Result<(), ModelError>;

impl SseParser {
    /// Takes the next bytes and passes every event that they complete to `sink`.
    pub fn push(&mut self, mut bytes: &[u8], sink: EventSink<'_>) -> Result<(), ModelError> {
        while let Some((&first, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend(bytes);
            };
            self.extend(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(sink)?;
        }
        Ok(())
    }

    /// Ends the stream. An event without its closing blank line still counts: servers forget the
    /// line, and an incomplete JSON text cannot be mistaken for a complete one.
    pub fn finish(mut self, sink: EventSink<'_>) -> Result<(), ModelError> {
        if !self.line.is_empty() {
            self.end_line(sink)?;
        }
        self.dispatch(sink)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(ModelError::Protocol(format!(
                "an event has more than {MAX_EVENT_BYTES} bytes"
            )));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, sink: EventSink<'_>) -> Result<(), ModelError> {
        let mut line = std::mem::take(&mut self.line);
        let skip = if self.after_first_line || !line.starts_with(BOM) {
            0
        } else {
            BOM.len()
        };
        self.after_first_line = true;
        let ended = if line.len() == skip {
            self.dispatch(sink)
        } else {
            self.field(&String::from_utf8_lossy(&line[skip..]));
            Ok(())
        };
        line.clear();
        self.line = line;
        ended
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event),
            // Comments have an empty name; `id` and `retry` serve reconnecting, which no model
            // offers.
            _ => {}
        }
    }

    fn dispatch(&mut self, sink: EventSink<'_>) -> Result<(), ModelError> {
        let sent = if std::mem::take(&mut self.has_data) {
            sink(&self.event, &self.data)
        } else {
            Ok(())
        };
        self.event.clear();
        self.data.clear();
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut sink = |event: &str, data: &str| {
            events.push((event.to_owned(), data.to_owned()));
            Ok(())
        };
        let mut parser = SseParser::default();
        for piece in pieces {
            parser.push(piece, &mut sink).unwrap();
        }
        parser.finish(&mut sink).unwrap();
        events
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_split() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: één 🦀\r\ndata:two\r\n\r\ndata\n\nid: 7\nretry: 9\rdata: x:y\r\r\
                    event: no data\n\nunknown: field\ndata:  two spaces\n\ndata: no blank line";
        let want: Vec<(String, String)> = [
            ("a", "één 🦀\ntwo"),
            ("", ""),
            ("", "x:y"),
            ("", " two spaces"),
            ("", "no blank line"),
        ]
        .map(|(event, data)| (event.to_owned(), data.to_owned()))
        .into();
        let bytes = text.as_bytes();
        assert_eq!(parse(&[bytes]), want);
        for first in 0..=bytes.len() {
            assert_eq!(
                parse(&[&bytes[..first], &bytes[first..]]),
                want,
                "split at {first}"
            );
        }
        assert_eq!(parse(&bytes.chunks(1).collect::<Vec<_>>()), want);
    }

    #[test]
    fn bytes_that_are_not_utf8_become_replacement_characters() {
        assert_eq!(
            parse(&[b"data: a\xffb\n\n"]),
            [(String::new(), "a\u{fffd}b".to_owned())]
        );
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_refused() {
        let mut parser = SseParser::default();
        let mut push = |bytes: &[u8]| parser.push(bytes, &mut |_, _| Ok(()));
        let piece = vec![b'x'; 1024 * 1024];
        let line = (0..9).try_for_each(|_| push(&piece));
        assert!(matches!(line, Err(ModelError::Protocol(_))), "{line:?}");

        let mut parser = SseParser::default();
        let mut push = |bytes: &[u8]| parser.push(bytes, &mut |_, _| Ok(()));
        let event = (0..9).try_for_each(|_| {
            push(b"data: ")
                .and_then(|()| push(&piece))
                .and_then(|()| push(b"\n"))
        });
        assert!(matches!(event, Err(ModelError::Protocol(_))), "{event:?}");
    }
}
