//! Kinds of tokenizer files, told apart by their content.

use std::fmt;

/// Kind of a tokenizer file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// `tokenizer.json` of Hugging Face.
    HuggingFace,
    /// Lines of a token in Base64 and a rank.
    Tiktoken,
    /// A SentencePiece model.
    SentencePiece,
    /// `tokenizer.bin` of llama2.c.
    Llama2c,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HuggingFace => "a tokenizer.json of Hugging Face",
            Self::Tiktoken => "a file of ranks as tiktoken has them",
            Self::SentencePiece => "a SentencePiece model",
            Self::Llama2c => "a tokenizer of llama2.c",
        })
    }
}

impl Kind {
    /// Finds out which kind of file begins with these bytes, in constant time; `None` if none does.
    ///
    /// Every kind begins in a way that no other does: JSON with a brace, ranks with a token in Base64 and a number, a
    /// SentencePiece model with a piece, and llama2.c with a number whose highest byte is zero.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..bytes.len().min(1 << 10))?;
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        if text.first() == Some(&b'{') {
            return Some(Self::HuggingFace);
        }
        if is_rank(head.split(|byte| *byte == b'\n').next()?) {
            return Some(Self::Tiktoken);
        }
        // A piece: field 1, its length, and in it the text (field 1), the score or the type.
        if let [0x0a, length, rest @ ..] = head
            && *length > 0
        {
            let inner = if *length & 0x80 == 0 { rest.first() } else { rest.get(1) };
            if matches!(inner, Some(0x0a | 0x15 | 0x18)) {
                return Some(Self::SentencePiece);
            }
        }
        let word: [u8; 4] = head.get(..4)?.try_into().ok()?;
        (u32::from_le_bytes(word) < 1 << 24).then_some(Self::Llama2c)
    }
}

/// Whether a line is a token in Base64, a space and a number.
fn is_rank(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Some(space) = line.iter().position(|byte| *byte == b' ') else { return false };
    let (token, rank) = line.split_at(space);
    let rank = rank.trim_ascii();
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !token.is_empty()
        && token.len() % 4 == 0
        && token.iter().all(base64)
        && !rank.is_empty()
        && rank.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn kinds_differ_by_their_first_bytes() {
        assert_eq!(Kind::of(b" \n{\"model\": {}}"), Some(Kind::HuggingFace));
        assert_eq!(Kind::of(b"IQ== 0\nIg== 1\n"), Some(Kind::Tiktoken));
        assert_eq!(Kind::of(b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02"), Some(Kind::SentencePiece));
        assert_eq!(Kind::of(&[10, 0, 0, 0, 0, 0, 0, 0]), Some(Kind::Llama2c));
        assert_eq!(Kind::of(b"GGUF"), None);
        assert_eq!(Kind::of(b""), None);
    }
}
