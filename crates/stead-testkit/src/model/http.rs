//! Just enough HTTP/1.1 for a server on loopback: one request at a time, keep-alive, both body
//! framings.
//!
//! Effects: test support.

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Returns `CLOCK_MONOTONIC` in nanoseconds, which is comparable between the processes of a
/// machine.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// A request as it was received.
#[derive(Debug)]
pub(crate) struct FakeHttpRequest {
    /// The time at which its first byte was seen, see [`monotonic_ns`].
    pub(crate) first_byte_ns: u64,
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl FakeHttpRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// Returns the first header with this name, ignoring case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Reads the next request; none if the client has closed the connection. `buffer` keeps the bytes
/// read beyond it.
pub(crate) async fn read(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
) -> io::Result<Option<FakeHttpRequest>> {
    if buffer.is_empty() && stream.read_buf(buffer).await? == 0 {
        return Ok(None);
    }
    let first_byte_ns = monotonic_ns();
    let head_len = loop {
        match memmem::find(buffer, b"\r\n\r\n") {
            Some(at) => break at + 4,
            None if stream.read_buf(buffer).await? == 0 => return Ok(None),
            None => {}
        }
    };
    let head = String::from_utf8_lossy(&buffer.split_to(head_len)).into_owned();
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let target = first.next().unwrap_or_default().to_owned();
    let split = |line: &str| {
        line.split_once(':')
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
    };
    let headers: Vec<_> = lines.filter_map(split).collect();

    let chunked =
        header(&headers, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
    let body = if chunked {
        read_chunked(stream, buffer).await?
    } else {
        let len = header(&headers, "content-length")
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        take(stream, buffer, len).await?
    };
    Ok(Some(FakeHttpRequest {
        first_byte_ns,
        method,
        target,
        headers,
        body,
    }))
}

async fn read_chunked(stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<Bytes> {
    let mut body = BytesMut::new();
    loop {
        let line_len = loop {
            match memmem::find(buffer, b"\r\n") {
                Some(at) => break at + 2,
                None if stream.read_buf(buffer).await? == 0 => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                None => {}
            }
        };
        let line = buffer.split_to(line_len);
        let digits = std::str::from_utf8(&line)
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let len = usize::from_str_radix(digits, 16)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        let data = take(stream, buffer, len + 2).await?;
        if len == 0 {
            return Ok(body.freeze());
        }
        body.extend_from_slice(&data[..len]);
    }
}

async fn take(stream: &mut TcpStream, buffer: &mut BytesMut, len: usize) -> io::Result<Bytes> {
    while buffer.len() < len {
        buffer.reserve(len - buffer.len());
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(buffer.split_to(len).freeze())
}

/// The framing of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
}

/// Returns the head of a response.
pub(crate) fn head(
    status: u16,
    content_type: &str,
    framing: Framing,
    retry_after_s: Option<u64>,
) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        429 => "Too Many Requests",
        _ => "Scripted",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n");
    match framing {
        Framing::Length(len) => head.push_str(&format!("content-length: {len}\r\n")),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
    }
    if let Some(seconds) = retry_after_s {
        head.push_str(&format!("retry-after: {seconds}\r\n"));
    }
    head.push_str("\r\n");
    head
}

/// Returns one piece of a body in its framing.
pub(crate) fn frame(framing: Framing, piece: &[u8]) -> Vec<u8> {
    match framing {
        Framing::Length(_) => piece.to_vec(),
        Framing::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
    }
}
