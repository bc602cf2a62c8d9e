//! Answers of servers: what is believed, and what is refused and how.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use edgepack_cli::remote::{AnswerError, Credentials, RemoteError, open};
use edgepack_loader::Source;
use proptest::prelude::*;

use super::server::{File, Question, Server};
use super::{access, opened};

/// Bytes that differ from their neighbours.
fn content(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The error of reading a range.
fn failure(source: &dyn Source, offset: u64, len: usize) -> RemoteError {
    let error = source.read_at(offset, &mut vec![0; len]).expect_err("a failure");
    error.downcast::<RemoteError>().expect("an error of the server")
}

/// The error of opening a file of which the first answer is this.
fn first(answer: impl Into<Vec<u8>>) -> RemoteError {
    let answer = answer.into();
    let server = Server::new(move |_, out| {
        out.write_all(&answer)?;
        // The connection ends behind the answer.
        Err(io::ErrorKind::ConnectionAborted.into())
    });
    opened(&server).err().expect("a failure")
}

#[test]
fn every_range_is_that_of_the_file() {
    let bytes = content(10_000_000);
    let server = Server::of(File::new(bytes.clone(), bytes.len() as u64));
    let source = opened(&server).unwrap();
    assert_eq!(source.len(), bytes.len() as u64);
    for (offset, len) in
        [(0, 1), (0, 100_000), (32_767, 2), (9_999_999, 1), (5_000_001, 4_999_999), (1, 6_291_456), (70_000, 0)]
    {
        let mut read = vec![0; len];
        source.read_at(offset, &mut read).unwrap();
        assert!(read == bytes[offset as usize..offset as usize + len], "{len} bytes at {offset}");
    }
    for (offset, len) in [(10_000_000, 1), (9_999_999, 2), (u64::MAX, 1)] {
        let error = source.read_at(offset, &mut vec![0; len]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
    // Everything but the first question is tied to the file that was opened.
    let asked = server.asked();
    assert!(
        asked[0].header("if-match").is_none() && asked[1..].iter().all(|one| one.header("if-match") == Some("\"one\""))
    );
    assert!(asked.iter().all(|one| one.header("accept-encoding") == Some("identity")));
}

#[test]
fn what_was_fetched_is_not_fetched_again() {
    let server = Server::of(File::new(content(3_000_000), 3_000_000));
    let source = opened(&server).unwrap();
    let read = |offset: u64, len: usize| source.read_at(offset, &mut vec![0; len]).unwrap();
    for offset in 0..1000 {
        read(offset * 16, 16);
    }
    assert_eq!(server.asked().len(), 1);
    // Who reads on is given more at a time.
    for offset in 0..2000 {
        read(offset * 1000, 1000);
    }
    assert!(server.asked().len() < 12, "{} questions", server.asked().len());
    assert!(source.fetched() < 2 * 2_100_000);
}

#[test]
fn a_file_without_bytes_is_one() {
    let server = Server::of(File::new([], 0));
    assert_eq!(opened(&server).unwrap().len(), 0);
}

#[test]
fn files_are_told_apart_by_their_date_or_a_weak_tag() {
    let date = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (identity, condition) in [(date, Some("Sun, 06 Nov 1994 08:49:37 GMT")), ("ETag: W/\"weak\"\r\n", None)] {
        let file = File { identity: identity.to_owned(), ..File::new(content(200_000), 200_000) };
        let server = Server::of(file);
        opened(&server).unwrap().read_at(150_000, &mut [0; 10]).unwrap();
        let second = server.asked().pop().unwrap();
        assert_eq!((second.header("if-unmodified-since"), second.header("if-match")), (condition, None));
    }
    let server = Server::of(File { identity: String::new(), ..File::new(content(200_000), 200_000) });
    assert_eq!(opened(&server).err(), Some(RemoteError::Unidentified));
    // One answer holds all of it.
    let server = Server::of(File { identity: String::new(), ..File::new(content(100), 100) });
    assert_eq!(opened(&server).unwrap().len(), 100);
}

#[test]
fn changes_are_noticed() {
    let one = File::new(content(500_000), 500_000);
    let dated =
        |date: &str| File { identity: format!("Last-Modified: Sun, 06 Nov 1994 08:49:{date} GMT\r\n"), ..one.clone() };
    let tagged = |tag: &str| File { identity: tag.to_owned(), ..one.clone() };
    for (first, then, what) in [
        (one.clone(), tagged("ETag: \"two\"\r\n"), "its ETag"),
        (one.clone(), tagged(""), "its ETag"),
        (tagged("ETag: W/\"one\"\r\n"), tagged("ETag: W/\"two\"\r\n"), "its ETag"),
        (one.clone(), File { len: 500_001, ..one.clone() }, "its length"),
        (one.clone(), File { len: 499_999, ..one.clone() }, "its length"),
        (dated("37"), dated("38"), "its date"),
    ] {
        let count = AtomicUsize::new(0);
        let server = Server::new(move |question, out| match count.fetch_add(1, Ordering::Relaxed) {
            0 => first.answer(question, out),
            _ => then.answer(question, out),
        });
        let error = failure(&opened(&server).unwrap(), 300_000, 10);
        assert!(matches!(error, RemoteError::Changed { what: found, .. } if found == what), "{what}: {error:?}");
    }
    let server = Server::new(move |question, out| match question.header("if-match") {
        None => one.answer(question, out),
        Some(_) => write!(out, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n"),
    });
    assert_eq!(failure(&opened(&server).unwrap(), 300_000, 10), RemoteError::Replaced);
}

#[test]
fn answers_that_cannot_be_are_refused() {
    let head = |rest: &str| format!("HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\n{rest}\r\n");
    let answer = |error: AnswerError| RemoteError::Answer(error);
    let body = "x".repeat(1000);
    assert_eq!(first(head("Content-Length: 10\r\n") + &body), answer(AnswerError::NoRange));
    let shorter = first(head("Content-Range: bytes 0-999/1000\r\nContent-Length: 999\r\n") + &body);
    assert_eq!(shorter, answer(AnswerError::Length { have: 999, want: 1000 }));
    let longer = first(head("Content-Range: bytes 0-999/1000\r\nContent-Length: 9223372036854775807\r\n") + &body);
    assert!(matches!(longer, RemoteError::Answer(AnswerError::Length { want: 1000, .. })), "{longer:?}");
    for other in ["1-1000/2000", "0-998/1000", "0-999/40000", "5-5/6"] {
        let found = first(head(&format!("Content-Range: bytes {other}\r\n")) + &body);
        assert!(matches!(found, RemoteError::Answer(AnswerError::OtherRange { .. })), "{other}: {found:?}");
    }
    for senseless in
        ["bytes 0-18446744073709551615/18446744073709551615", "bytes 0-999/*", "bytes 999-0/1000", "nothing"]
    {
        let found = first(head(&format!("Content-Range: {senseless}\r\n")) + &body);
        assert_eq!(found, answer(AnswerError::Header("Content-Range")), "{senseless}");
    }
    let range = "Content-Range: bytes 0-999/1000\r\n";
    let truncated = first(head(&format!("{range}Content-Length: 1000\r\n")) + &body[..600]);
    assert_eq!(truncated, answer(AnswerError::Truncated { have: 600, want: 1000 }));
    let closed = first(head(&format!("{range}Connection: close\r\n")) + &body[..600]);
    assert_eq!(closed, answer(AnswerError::Truncated { have: 600, want: 1000 }));
    let zipped = first(head(&format!("{range}Content-Encoding: gzip\r\n")) + &body);
    assert_eq!(zipped, answer(AnswerError::Encoded));
    let chunks = first(head(&format!("{range}Transfer-Encoding: chunked\r\n")) + "3e9\r\n" + &body + "y\r\n0\r\n\r\n");
    assert_eq!(chunks, answer(AnswerError::Endless { want: 1000 }));
    let whole = first(format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{body}"));
    assert_eq!(whole, RemoteError::NoRanges);
    for status in [204, 400, 401, 403, 404, 410, 501] {
        let answer = first(format!("HTTP/1.1 {status} Words\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(answer, RemoteError::Status { status });
    }
    let long = first(format!("HTTP/1.1 206 Partial Content\r\nX: {}\r\n\r\n", "x".repeat(100_000)));
    assert!(matches!(long, RemoteError::Answer(AnswerError::Header(_))), "{long:?}");
}

#[test]
fn bodies_without_an_end_are_not_read_to_it() {
    for head in ["Transfer-Encoding: chunked\r\n", "Connection: close\r\n"] {
        let server = Server::new(move |_, out| {
            let range = "Content-Range: bytes 0-999/1000";
            write!(out, "HTTP/1.1 206 Partial Content\r\n{range}\r\nETag: \"x\"\r\n{head}\r\n")?;
            loop {
                match head.starts_with('T') {
                    true => write!(out, "10\r\n0123456789abcdef\r\n")?,
                    false => out.write_all(&[0; 16])?,
                }
            }
        });
        assert_eq!(opened(&server).err(), Some(RemoteError::Answer(AnswerError::Endless { want: 1000 })), "{head}");
    }
}

#[test]
fn drops_are_not_waited_for() {
    let dripping: [fn(&mut dyn Write) -> io::Result<()>; 3] = [
        |out| write!(out, "x"),
        |out| write!(out, "X: y\r\n"),
        // Not even an answer begins.
        |_| Ok(()),
    ];
    for (index, drip) in dripping.into_iter().enumerate() {
        let server = Server::new(move |_, out| {
            let range = "Content-Range: bytes 0-999/1000\r\nContent-Length: 1000\r\nETag: \"x\"\r\n";
            match index {
                0 => write!(out, "HTTP/1.1 206 Partial Content\r\n{range}\r\n")?,
                1 => write!(out, "HTTP/1.1 206 Partial Content\r\n{range}")?,
                _ => {}
            }
            loop {
                thread::sleep(Duration::from_millis(50));
                drip(out)?;
            }
        });
        let begin = Instant::now();
        assert_eq!(opened(&server).err(), Some(RemoteError::Timeout(2)), "{index}");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn an_overloaded_server_is_asked_again() {
    let (file, count) = (File::new(content(100), 100), AtomicUsize::new(0));
    let server = Server::new(move |question, out| match count.fetch_add(1, Ordering::Relaxed) {
        0 => write!(out, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"),
        _ => file.answer(question, out),
    });
    assert_eq!(opened(&server).unwrap().len(), 100);
    let server = Server::new(|_, out| write!(out, "HTTP/1.1 503 Words\r\nContent-Length: 3\r\n\r\nbad"));
    assert_eq!(opened(&server).err(), Some(RemoteError::Status { status: 503 }));
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn no_more_is_fetched_than_the_limits_allow() {
    let server = Server::of(File::new(content(1_000_000), 1_000_000));
    let mut access = access();
    access.limits.fetch_bytes = 300_000;
    let source = open(&server.url("file"), &access).unwrap();
    source.read_at(100_000, &mut [0; 100_000]).unwrap();
    let error = failure(&source, 500_000, 200_000);
    assert!(matches!(error, RemoteError::Limit { bytes: 300_001.., limit: 300_000 }), "{error:?}");
    assert!(server.sent() < 310_000);
}

/// Answers every question by sending elsewhere.
fn redirecting(to: impl Fn(&Question) -> String + Send + Sync + 'static) -> Server {
    Server::new(move |question, out| {
        let to = to(question);
        write!(out, "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
    })
}

#[test]
fn redirects_lead_to_files_alone() {
    for to in [
        "http://example.com/file",
        "http://10.0.0.1/file",
        "http://169.254.169.254/latest/meta-data",
        "ftp://example.com/file",
        "file:///etc/passwd",
        "https://user:password@example.com/",
        "https://[",
        "http://0.0.0.0/",
    ] {
        let server = redirecting(move |_| to.to_owned());
        let error = opened(&server).err().unwrap();
        assert!(matches!(error, RemoteError::Redirect(_)), "{to}: {error:?}");
        assert_eq!(server.asked().len(), 1);
    }
    // What is for links and machines alone is not even connected to.
    for to in [
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://0.0.0.0/",
    ] {
        let error = opened(&redirecting(move |_| to.to_owned())).err().unwrap();
        assert!(matches!(error, RemoteError::Address { .. }), "{to}: {error:?}");
    }
    let server = redirecting(|question| format!("{}x", question.path()));
    assert_eq!(opened(&server).err(), Some(RemoteError::Redirect("again and again")));
    assert_eq!(server.asked().len(), 6);
    let silent = first("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
    assert!(matches!(silent, RemoteError::Redirect(_)));
}

#[test]
fn redirects_are_followed_once_and_without_credentials() {
    let file = Server::of(File::new(content(500_000), 500_000));
    let to = file.url("signed?key=1");
    let server = redirecting(move |_| to.clone());
    let mut access = access();
    access.credentials = Some(Credentials::new(&server.host(), "secret").unwrap());
    let source = open(&server.url("file"), &access).unwrap();
    source.read_at(300_000, &mut [0; 100]).unwrap();
    let (here, there) = (server.asked(), file.asked());
    assert_eq!((here.len(), there.len()), (1, 2));
    assert_eq!(here[0].header("authorization"), Some("Bearer secret"));
    assert!(there.iter().all(|one| one.header("authorization").is_none() && one.path() == "/signed?key=1"));
    assert_eq!(there[1].header("if-match"), Some("\"one\""));
    // A token for another host stays here, even if the server sends there.
    let to = file.url("file");
    let server = redirecting(move |_| to.clone());
    access.credentials = Some(Credentials::new(&file.host(), "secret").unwrap());
    open(&server.url("file"), &access).unwrap();
    assert!(server.asked().iter().chain(&file.asked()[2..]).all(|one| one.header("authorization").is_none()));
}

#[test]
fn a_place_that_was_good_for_a_while_is_asked_for_again() {
    let (bytes, count) = (File::new(content(500_000), 500_000), AtomicUsize::new(0));
    let file = Server::new(move |question, out| match count.fetch_add(1, Ordering::Relaxed) {
        1 => write!(out, "HTTP/1.1 403 Expired\r\nContent-Length: 0\r\n\r\n"),
        _ => bytes.answer(question, out),
    });
    let to = file.url("signed");
    let server = redirecting(move |_| to.clone());
    opened(&server).unwrap().read_at(300_000, &mut [0; 100]).unwrap();
    assert_eq!((server.asked().len(), file.asked().len()), (2, 3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Nothing that a server sends ends the command, or is waited for.
    #[test]
    fn any_answer_ends_well(
        status in prop_oneof![Just("HTTP/1.1 206 Partial Content".to_owned()), "HTTP/1\\.[01] [0-9]{3} [A-Za-z ]{0,9}", ".{0,40}"],
        headers in proptest::collection::vec(prop_oneof![
            "(Content-Range|Content-Length|ETag|Last-Modified|Location|Transfer-Encoding): .{0,60}",
            "Content-Range: bytes [0-9]{1,20}-[0-9]{1,20}/[0-9]{1,20}",
            Just("Content-Range: bytes 0-9/10".to_owned()),
            Just("Transfer-Encoding: chunked".to_owned()),
            Just("ETag: \"x\"".to_owned()),
            ".{0,40}",
        ], 0..6),
        body in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut answer = format!("{status}\r\n{}\r\n\r\n", headers.join("\r\n")).into_bytes();
        answer.extend(body);
        let server = Server::new(move |_, out| {
            out.write_all(&answer)?;
            Err(io::ErrorKind::ConnectionAborted.into())
        });
        let begin = Instant::now();
        if let Ok(source) = opened(&server) {
            prop_assert!(source.len() == 0 || source.fetched() > 0);
        }
        prop_assert!(begin.elapsed() < Duration::from_secs(10));
    }
}
