//! The most likely division of a text into pieces (Viterbi's algorithm), as the library computes it, to the last bit.

use std::ops::Range;

use super::model::{Kind, Model};
use super::normalise::Normalised;
use super::prefixes::Prefixes;
use super::symbols::Symbols;

/// Score below the worst piece at which a character counts as unknown.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Pieces that text can be divided into.
#[derive(Debug)]
pub(super) struct Unigram {
    prefixes: Prefixes,
    least: f32,
    most: f32,
}

#[derive(Clone, Copy)]
struct Best {
    id: u32,
    score: f32,
    start: Option<usize>,
}

impl Unigram {
    pub fn new(model: &Model) -> Self {
        let usable =
            (0u32..).zip(&model.pieces).filter(|(_, piece)| matches!(piece.kind, Kind::Normal | Kind::UserDefined));
        let scores = model.pieces.iter().filter(|piece| piece.kind == Kind::Normal).map(|piece| piece.score);
        Self {
            prefixes: Prefixes::new(usable.map(|(id, piece)| (piece.text.as_bytes().into(), id))),
            least: scores.clone().fold(f32::MAX, f32::min),
            most: scores.fold(f32::MIN, f32::max),
        }
    }

    /// Divides a text into ranges and their ids; the unknown id stands for single characters.
    pub fn divide(&self, model: &Model, symbols: &Symbols, normalised: &Normalised) -> Vec<(Range<usize>, u32)> {
        let text = normalised.text.as_str();
        let mut best = vec![Best { id: model.unknown, score: 0.0, start: None }; text.len() + 1];
        for (start, c) in text.char_indices() {
            let so_far = best[start].score;
            let mut single = false;
            for (length, id) in self.prefixes.of(&text.as_bytes()[start..]) {
                if !symbols.allows(id, &(start..start + length), &normalised.guarded) {
                    continue;
                }
                let piece = &model.pieces[id as usize];
                // Symbols of the user win over whatever lies in them.
                let score = if piece.kind == Kind::UserDefined {
                    f64::from(length as f32 * self.most) - 0.1
                } else {
                    f64::from(piece.score)
                };
                let candidate = score + f64::from(so_far);
                let target = &mut best[start + length];
                if target.start.is_none() || candidate > f64::from(target.score) {
                    *target = Best { id, score: candidate as f32, start: Some(start) };
                }
                single |= length == c.len_utf8();
            }
            if !single {
                let candidate = self.least - UNKNOWN_PENALTY + so_far;
                let target = &mut best[start + c.len_utf8()];
                if target.start.is_none() || candidate > target.score {
                    *target = Best { id: model.unknown, score: candidate, start: Some(start) };
                }
            }
        }
        let mut divided = Vec::new();
        let mut end = text.len();
        while let Some(start) = best[end].start {
            divided.push((start..end, best[end].id));
            end = start;
        }
        divided.reverse();
        divided
    }
}
