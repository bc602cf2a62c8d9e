//! Heads of answers to questions for a range: every number and name in them is a claim of the server.
//!
//! Invariant: of an answer that is taken, range and length say one thing, which is what was asked for; the headers handed
//! on are written anew from what was read.

use std::ops::Range;

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED,
};

/// An answer that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// A header is there more than once, or holds what it cannot.
    #[error("its {0} makes no sense")]
    Header(&'static str),
    /// The header with the range is absent.
    #[error("it does not say which range it holds")]
    NoRange,
    /// Another range than that asked for.
    #[error("it holds bytes {}..{} of {total}, asked for were {}..{}", have.start, have.end, want.start, want.end)]
    OtherRange {
        /// Range of the answer.
        have: Range<u64>,
        /// Range that was asked for.
        want: Range<u64>,
        /// Length of the file, as the answer has it.
        total: u64,
    },
    /// The length of the body is not that of the range.
    #[error("it announces {have} bytes for a range of {want}")]
    Length {
        /// Length of the body.
        have: u64,
        /// Length of the range.
        want: u64,
    },
    /// The body ends early.
    #[error("it ends after {have} of {want} bytes")]
    Truncated {
        /// Bytes that came.
        have: u64,
        /// Length of the range.
        want: u64,
    },
    /// The body does not end.
    #[error("more than the {want} bytes of the range come")]
    Endless {
        /// Length of the range.
        want: u64,
    },
    /// The body is not the bytes of the file.
    #[error("it is compressed, although that was excluded")]
    Encoded,
}

/// An answer that holds the range asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Bytes of the file that the body holds.
    pub range: Range<u64>,
    /// Length of the file.
    pub total: u64,
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

/// Length of files that are taken: positions behind their end can be computed with.
const LONGEST: u64 = i64::MAX as u64;

/// Bytes of a tag that identifies a file.
const TAG: usize = 1024;

impl Answer {
    /// Reads the head of an answer with status 206 to a question for `asked`, which is not empty.
    pub fn read(asked: &Range<u64>, headers: &HeaderMap) -> Result<Answer, AnswerError> {
        if single(headers, CONTENT_ENCODING, "Content-Encoding")?
            .is_some_and(|value| !value.eq_ignore_ascii_case("identity"))
        {
            return Err(AnswerError::Encoded);
        }
        let stated = single(headers, CONTENT_RANGE, "Content-Range")?.ok_or(AnswerError::NoRange)?;
        let (range, total) = content_range(stated).ok_or(AnswerError::Header("Content-Range"))?;
        let want = asked.start..asked.end.min(total);
        if range != want {
            return Err(AnswerError::OtherRange { have: range, want, total });
        }
        let want = range.end - range.start;
        if let Some(length) = single(headers, CONTENT_LENGTH, "Content-Length")? {
            let have = number(length).ok_or(AnswerError::Header("Content-Length"))?;
            if have != want {
                return Err(AnswerError::Length { have, want });
            }
        }
        let tag = single(headers, ETAG, "ETag")?;
        if tag.is_some_and(|tag| tag.is_empty() || tag.len() > TAG) {
            return Err(AnswerError::Header("ETag"));
        }
        let modified = single(headers, LAST_MODIFIED, "Last-Modified")?;
        if modified.is_some_and(|date| !is_date(date)) {
            return Err(AnswerError::Header("Last-Modified"));
        }
        let value = |text: &str| HeaderValue::from_str(text).ok();
        Ok(Answer { range, total, etag: tag.and_then(value), modified: modified.and_then(value) })
    }

    /// Bytes of the range.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The headers that say this, and nothing else.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let range = format!("bytes {}-{}/{}", self.range.start, self.range.end - 1, self.total);
        headers.extend(HeaderValue::from_str(&range).ok().map(|range| (CONTENT_RANGE, range)));
        headers.insert(CONTENT_LENGTH, self.len().into());
        headers.extend(self.etag.clone().map(|tag| (ETAG, tag)));
        headers.extend(self.modified.clone().map(|date| (LAST_MODIFIED, date)));
        headers
    }
}

/// Returns whether the answer with status 416 is about a file without bytes.
pub fn is_empty(headers: &HeaderMap) -> bool {
    matches!(single(headers, CONTENT_RANGE, "Content-Range"), Ok(Some("bytes */0")))
}

/// The value of a header that may be there once, if it is there. Characters are visible ones and spaces.
fn single<'h>(headers: &'h HeaderMap, name: HeaderName, shown: &'static str) -> Result<Option<&'h str>, AnswerError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| AnswerError::Header(shown)).map(str::trim));
    match values.next() {
        None => first.transpose(),
        Some(_) => Err(AnswerError::Header(shown)),
    }
}

/// `bytes FIRST-LAST/TOTAL`: the range, and the total.
fn content_range(text: &str) -> Option<(Range<u64>, u64)> {
    let (unit, rest) = text.split_once(' ')?;
    let (range, total) = rest.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, total) = (number(first)?, number(last)?, number(total)?);
    (unit.eq_ignore_ascii_case("bytes") && first <= last && last < total).then(|| (first..last + 1, total))
}

/// A number in digits alone.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= LONGEST)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, by its form.
fn is_date(text: &str) -> bool {
    const FORM: &[u8] = b"Aaa, 00 Aaa 0000 00:00:00 GMT";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'A' if byte.is_ascii_uppercase() => true,
            b'a' => byte.is_ascii_lowercase(),
            _ => byte == *form,
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(pairs: &[(HeaderName, &[u8])]) -> HeaderMap {
        let value = |bytes: &[u8]| HeaderValue::from_bytes(bytes).unwrap();
        pairs.iter().map(|(name, bytes)| (name.clone(), value(bytes))).fold(
            HeaderMap::new(),
            |mut map, (name, value)| {
                map.append(name, value);
                map
            },
        )
    }

    fn read(pairs: &[(HeaderName, &[u8])]) -> Result<Answer, AnswerError> {
        Answer::read(&(100..200), &head(pairs))
    }

    #[test]
    fn what_was_asked_for_is_taken() {
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT".as_slice();
        let answer = read(&[
            (CONTENT_RANGE, b"bytes 100-199/5000"),
            (CONTENT_LENGTH, b"100"),
            (ETAG, b"\"tag\""),
            (LAST_MODIFIED, date),
            (CONTENT_ENCODING, b"identity"),
        ]);
        let answer = answer.unwrap();
        assert_eq!((answer.range.clone(), answer.total, answer.len()), (100..200, 5000, 100));
        assert_eq!(Answer::read(&(100..200), &answer.headers()), Ok(answer));
        // The end of the file cuts the range short.
        assert_eq!(read(&[(CONTENT_RANGE, b"bytes 100-149/150")]).unwrap().range, 100..150);
        assert!(is_empty(&head(&[(CONTENT_RANGE, b"bytes */0")])));
        assert!(!is_empty(&head(&[(CONTENT_RANGE, b"bytes */1")])));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let range = (CONTENT_RANGE, b"bytes 100-199/5000".as_slice());
        let range = || range.clone();
        assert_eq!(read(&[]), Err(AnswerError::NoRange));
        for other in
            ["bytes 0-99/5000", "bytes 100-198/5000", "bytes 100-200/5000", "bytes 100-149/200", "bytes 0-4999/5000"]
        {
            let answer = read(&[(CONTENT_RANGE, other.as_bytes())]);
            assert!(matches!(answer, Err(AnswerError::OtherRange { .. })), "{other}");
        }
        for senseless in [
            "bytes 100-199/*",
            "bytes */5000",
            "bytes 199-100/5000",
            "bytes 100-199/199",
            "bytes 100-199/5000 ",
            "lines 100-199/5000",
            "bytes +100-199/5000",
            "bytes 100-18446744073709551615/18446744073709551616",
            "bytes 100-99999999999999999999/5000",
            "bytes 0-18446744073709551615/18446744073709551615",
            "bytes",
            "bytes -/",
            "",
            "bytes 100-199/5000/1",
        ] {
            let answer = read(&[(CONTENT_RANGE, senseless.as_bytes())]);
            let fine = senseless.ends_with(' ');
            assert!(
                fine == answer.is_ok()
                    && answer.clone().err().is_none_or(|e| e == AnswerError::Header("Content-Range")),
                "{senseless}: {answer:?}"
            );
        }
        assert_eq!(read(&[range(), (CONTENT_LENGTH, b"99")]), Err(AnswerError::Length { have: 99, want: 100 }));
        for (name, shown, bad) in [
            (CONTENT_LENGTH, "Content-Length", b"-1".as_slice()),
            (CONTENT_LENGTH, "Content-Length", b"0x64"),
            (ETAG, "ETag", b""),
            (ETAG, "ETag", b"\"\xff\""),
            (ETAG, "ETag", &[b'a'; 1025]),
            (LAST_MODIFIED, "Last-Modified", b"yesterday"),
            (LAST_MODIFIED, "Last-Modified", b"Sun, 06 Nov 1994 08:49:37 CET"),
        ] {
            assert_eq!(read(&[range(), (name, bad)]), Err(AnswerError::Header(shown)), "{bad:?}");
        }
        for twice in [CONTENT_LENGTH, ETAG, LAST_MODIFIED, CONTENT_ENCODING] {
            let both = read(&[range(), (twice.clone(), b"100"), (twice, b"100")]);
            assert!(matches!(both, Err(AnswerError::Header(_))));
        }
        assert_eq!(read(&[range(), range()]), Err(AnswerError::Header("Content-Range")));
        assert_eq!(read(&[range(), (CONTENT_ENCODING, b"gzip")]), Err(AnswerError::Encoded));
    }

    /// A value of a header that is nearly right, or anything.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let number = prop_oneof![0..300u64, Just(u64::MAX), Just(LONGEST), any::<u64>()];
        let range = (number.clone(), number.clone(), number.clone());
        prop_oneof![
            4 => range.prop_map(|(first, last, total)| format!("bytes {first}-{last}/{total}").into_bytes()),
            1 => (99..102u64, 198..202u64, 199..300u64).prop_map(|(a, b, c)| format!("bytes {a}-{b}/{c}").into_bytes()),
            1 => number.prop_map(|number| number.to_string().into_bytes()),
            1 => Just(b"Sun, 06 Nov 1994 08:49:37 GMT".to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..40),
        ]
    }

    proptest! {
        #[test]
        fn no_head_is_too_much(
            asked in (0..300u64, 1..300u64),
            values in proptest::collection::vec((0..5usize, value()), 0..6),
        ) {
            let names = [CONTENT_RANGE, CONTENT_LENGTH, ETAG, LAST_MODIFIED, CONTENT_ENCODING];
            let mut headers = HeaderMap::new();
            for (name, bytes) in values {
                headers.extend(HeaderValue::from_bytes(&bytes).ok().map(|value| (names[name].clone(), value)));
            }
            let asked = asked.0..asked.0 + asked.1;
            if let Ok(answer) = Answer::read(&asked, &headers) {
                prop_assert!(answer.range.start == asked.start && answer.range.end <= asked.end);
                prop_assert!(answer.len() > 0 && answer.range.end <= answer.total && answer.total <= LONGEST);
                prop_assert_eq!(Answer::read(&asked, &answer.headers()), Ok(answer));
            }
        }
    }
}
