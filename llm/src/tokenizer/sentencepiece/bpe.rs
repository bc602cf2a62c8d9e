//! Pieces by merging: of all neighbours that make a piece those with the best score first.

use std::collections::HashMap;
use std::ops::Range;

use super::model::{Kind, Model};
use super::normalise::Normalised;
use super::symbols::Symbols;
use crate::tokenizer::merge::{Score, Symbol, merge};

/// Divides a text into ranges and their ids; the unknown id stands for single characters.
pub(super) fn divide(model: &Model, symbols: &Symbols, normalised: &Normalised) -> Vec<(Range<usize>, u32)> {
    let text = normalised.text.as_str();
    let mut begin = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let symbol = symbols.longest(&text[at..], at, &normalised.guarded);
        let length = symbol.or_else(|| text[at..].chars().next().map(char::len_utf8)).unwrap_or(1);
        begin.push(Symbol { range: at..at + length, fixed: symbol.is_some() });
        at += length;
    }
    let usable = |range: &Range<usize>| {
        let id = *model.ids.get(&text[range.clone()])?;
        let kind = model.pieces[id as usize].kind;
        let plain = matches!(kind, Kind::Normal | Kind::Unused | Kind::UserDefined);
        (plain && symbols.allows(id, range, &normalised.guarded)).then_some((id, kind))
    };
    // Borders at which pieces that are only steps were made.
    let mut borders: HashMap<&str, usize> = HashMap::new();
    let merged = merge(begin, |start, border, end| {
        let (id, kind) = usable(&(start..end))?;
        if kind == Kind::Unused {
            borders.insert(&text[start..end], border - start);
        }
        Some(Score(model.pieces[id as usize].score))
    });
    let mut divided = Vec::new();
    let mut open: Vec<Range<usize>> = merged.into_iter().rev().collect();
    while let Some(range) = open.pop() {
        match usable(&range) {
            Some((_, Kind::Unused)) if borders.contains_key(&text[range.clone()]) => {
                let border = range.start + borders[&text[range.clone()]];
                open.push(border..range.end);
                open.push(range.start..border);
            }
            Some((id, _)) => divided.push((range, id)),
            None => divided.push((range, model.unknown)),
        }
    }
    divided
}
