//! The file: pieces, and how text is normalised and divided.

use std::collections::HashMap;

use super::proto::Fields;
use crate::tokenizer::Error;
use crate::tokenizer::charsmap::Charsmap;

/// Longest piece, in bytes: bounds the time per byte of text.
const LONGEST: usize = 4096;

/// Kind of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// Entry of the vocabulary.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub text: Box<str>,
    pub score: f32,
    pub kind: Kind,
}

/// Algorithm that divides normalised text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    Unigram,
    Bpe,
}

/// Content of a model.
#[derive(Debug)]
pub(super) struct Model {
    pub pieces: Vec<Piece>,
    /// Ids of all pieces.
    pub ids: HashMap<Box<str>, u32>,
    /// Ids of bytes, if characters without a piece become bytes.
    pub bytes: Option<Box<[u32; 256]>>,
    pub algorithm: Algorithm,
    pub unknown: u32,
    /// Text of the unknown token.
    pub unknown_surface: String,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub charsmap: Option<Charsmap>,
    pub dummy_prefix: bool,
    pub remove_extra_whitespaces: bool,
    pub escape_whitespaces: bool,
    pub whitespace_as_suffix: bool,
}

/// Text of a field.
fn text(bytes: Option<&[u8]>, place: &str) -> Result<String, Error> {
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.map(str::to_owned).ok_or_else(|| Error::malformed(place, "it is not text in UTF-8"))
}

fn piece(bytes: &[u8], id: usize) -> Result<Piece, Error> {
    let broken = |message: String| Error::malformed(format!("pieces[{id}]"), message);
    let mut piece = Piece { text: "".into(), score: 0.0, kind: Kind::Normal };
    for field in Fields::new(bytes, "a piece") {
        match field? {
            (1, value) => piece.text = text(value.bytes(), &format!("pieces[{id}].piece"))?.into(),
            (2, value) => piece.score = value.float().unwrap_or(f32::NAN),
            (3, value) => {
                piece.kind = match value.int() {
                    Some(1) => Kind::Normal,
                    Some(2) => Kind::Unknown,
                    Some(3) => Kind::Control,
                    Some(4) => Kind::UserDefined,
                    Some(5) => Kind::Unused,
                    Some(6) => Kind::Byte,
                    other => return Err(broken(format!("its type {other:?} is not one of 1 to 6"))),
                }
            }
            _ => {}
        }
    }
    if piece.text.is_empty() || piece.text.len() > LONGEST {
        return Err(broken(format!("it has {} bytes, 1 to {LONGEST} are possible", piece.text.len())));
    }
    if !piece.score.is_finite() {
        return Err(broken("its score is not a finite number".to_owned()));
    }
    Ok(piece)
}

impl Model {
    /// Reads a model.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut model = Self {
            pieces: Vec::new(),
            ids: HashMap::new(),
            bytes: None,
            algorithm: Algorithm::Unigram,
            unknown: 0,
            unknown_surface: " \u{2047} ".to_owned(),
            bos: None,
            eos: None,
            charsmap: None,
            dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            whitespace_as_suffix: false,
        };
        let (mut byte_fallback, mut bos, mut eos) = (false, (1, "<s>".to_owned()), (2, "</s>".to_owned()));
        for field in Fields::new(bytes, "the model") {
            let (number, value) = field?;
            let Some(inner) = value.bytes() else { continue };
            match number {
                1 => {
                    let piece = piece(inner, model.pieces.len())?;
                    model.pieces.push(piece);
                }
                2 => {
                    for field in Fields::new(inner, "trainer_spec") {
                        let (number, value) = field?;
                        match number {
                            3 => {
                                model.algorithm = match value.int() {
                                    Some(1) => Algorithm::Unigram,
                                    Some(2) => Algorithm::Bpe,
                                    other => {
                                        let message = format!("{other:?}: 1 (unigram) and 2 (BPE) are read");
                                        return Err(Error::unsupported("trainer_spec.model_type", message));
                                    }
                                }
                            }
                            24 => model.whitespace_as_suffix = value.flag().unwrap_or(false),
                            35 => byte_fallback = value.flag().unwrap_or(false),
                            41 => bos.0 = value.int().unwrap_or(-1),
                            42 => eos.0 = value.int().unwrap_or(-1),
                            44 => model.unknown_surface = text(value.bytes(), "trainer_spec.unk_surface")?,
                            46 => bos.1 = text(value.bytes(), "trainer_spec.bos_piece")?,
                            47 => eos.1 = text(value.bytes(), "trainer_spec.eos_piece")?,
                            _ => {}
                        }
                    }
                }
                3 => model.normalizer(inner)?,
                5 => {
                    for field in Fields::new(inner, "denormalizer_spec") {
                        if let (2, value) = field?
                            && value.bytes().is_some_and(|rules| !rules.is_empty())
                        {
                            let message = "decoded text would be rewritten; such models are not read";
                            return Err(Error::unsupported("denormalizer_spec.precompiled_charsmap", message));
                        }
                    }
                }
                _ => {}
            }
        }
        model.complete(byte_fallback)?;
        // Ids count where the piece is there and a control piece, as the library has it.
        let named = |(id, piece): (i32, String)| {
            let id = u32::try_from(id).ok().and_then(|_| model.ids.get(piece.as_str()).copied())?;
            model.pieces.get(id as usize).is_some_and(|piece| piece.kind == Kind::Control).then_some(id)
        };
        (model.bos, model.eos) = (named(bos), named(eos));
        Ok(model)
    }

    fn normalizer(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for field in Fields::new(bytes, "normalizer_spec") {
            let (number, value) = field?;
            match number {
                2 => {
                    let (rules, place) = (value.bytes().unwrap_or_default(), "normalizer_spec.precompiled_charsmap");
                    self.charsmap = if rules.is_empty() { None } else { Some(Charsmap::parse(rules, place)?) };
                }
                3 => self.dummy_prefix = value.flag().unwrap_or(true),
                4 => self.remove_extra_whitespaces = value.flag().unwrap_or(true),
                5 => self.escape_whitespaces = value.flag().unwrap_or(true),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks the vocabulary and fills the tables.
    fn complete(&mut self, byte_fallback: bool) -> Result<(), Error> {
        let mut unknown = None;
        let mut bytes: Vec<Option<u32>> = vec![None; 256];
        for (id, piece) in (0u32..).zip(&self.pieces) {
            let broken = |message: &str| Error::malformed(format!("pieces[{id}]"), message);
            if self.ids.insert(piece.text.clone(), id).is_some() {
                return Err(broken("another piece has its text"));
            }
            match piece.kind {
                Kind::Unknown if unknown.replace(id).is_some() => {
                    return Err(broken("another piece is the unknown one"));
                }
                Kind::Byte => {
                    let byte = crate::tokenizer::byte_token(piece.text.as_bytes());
                    let byte = byte.ok_or_else(|| broken("a byte is written like <0x0A>"))?;
                    if let Some(slot) = bytes.get_mut(usize::from(byte)) {
                        *slot = Some(id);
                    }
                }
                _ => {}
            }
        }
        self.unknown = unknown.ok_or_else(|| Error::malformed("pieces", "none is the unknown one"))?;
        if byte_fallback {
            let all: Option<Vec<u32>> = bytes.into_iter().collect();
            let all = all.and_then(|all| <Box<[u32; 256]>>::try_from(all.into_boxed_slice()).ok());
            self.bytes = Some(all.ok_or_else(|| {
                Error::malformed("pieces", "characters are to become bytes; some bytes have no piece")
            })?);
        }
        Ok(())
    }
}
