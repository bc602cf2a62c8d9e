//! Normal form of equations of letters: every dimension has a letter of its own, and no letter occurs twice in a term.

use super::maker::Maker;
use crate::error::Error;
use crate::graph::ValueId;

/// First of the letters that represent the dimensions of `...`.
const HIDDEN: u32 = 0x3b1;

/// Terms of letters, the letters of the result, and operands with a dimension for each letter.
pub(super) type Plain = (Vec<Vec<char>>, Vec<char>, Vec<ValueId>);

/// Makes an equation plain. The result is as written, or, if nothing was, the dimensions of `...` and the letters in order.
pub(super) fn plain(
    make: &mut Maker<'_>,
    terms: &[&str],
    (result, written): (&str, bool),
    mut operands: Vec<ValueId>,
) -> Result<Plain, Error> {
    let mut most = 0;
    let mut letters = Vec::new();
    for (term, operand) in terms.iter().zip(&operands) {
        let named = term.chars().filter(|c| c.is_alphabetic()).count();
        let hidden = make.rank(*operand)?.saturating_sub(named);
        most = most.max(hidden);
        let stand_ins: String = stand_ins(hidden).into_iter().collect();
        letters.push(term.replacen("...", &stand_ins, 1).chars().collect::<Vec<char>>());
    }
    let all: String = stand_ins(most).into_iter().collect();
    let result = match (result.contains("..."), written) {
        (true, _) => result.replacen("...", &all, 1),
        (false, false) => format!("{all}{result}"),
        _ => result.to_owned(),
    };
    for (term, operand) in letters.iter_mut().zip(operands.iter_mut()) {
        while let Some((first, second)) = repeated(term) {
            let number = |at: usize| i64::try_from(at).unwrap_or(0);
            let args = [("self", (*operand).into()), ("dim1", number(first).into()), ("dim2", number(second).into())];
            *operand = make.call("diagonal", args)?;
            let letter = term.remove(second);
            term.remove(first);
            term.push(letter);
        }
    }
    // What has one element where others have more is repeated by leaving it out.
    for at in 0..letters.len() {
        let Some((term, operand)) = letters.get(at).cloned().zip(operands.get(at).copied()) else { continue };
        let mut dims = Vec::new();
        for (dim, letter) in (0i64..).zip(&term) {
            let single = make.size(operand, dim)?.known() == Some(1);
            let mut longer = false;
            for (other, value) in letters.iter().zip(&operands) {
                if let Some(place) = other.iter().position(|known| known == letter) {
                    longer |= make.size(*value, i64::try_from(place).unwrap_or(0))?.known() != Some(1);
                }
            }
            if single && longer {
                dims.push(dim);
            }
        }
        if let (false, Some(term), Some(operand)) = (dims.is_empty(), letters.get_mut(at), operands.get_mut(at)) {
            *operand = make.squeeze(*operand, &dims)?;
            let kept = (0i64..).zip(term.iter()).filter(|(dim, _)| !dims.contains(dim)).map(|(_, letter)| *letter);
            *term = kept.collect();
        }
    }
    Ok((letters, result.chars().collect(), operands))
}

/// Letters for dimensions without a name; those from the right agree between terms.
fn stand_ins(count: usize) -> Vec<char> {
    (0..count).rev().filter_map(|at| char::from_u32(HIDDEN.saturating_add(u32::try_from(at).unwrap_or(0)))).collect()
}

/// Returns the first two positions of a letter that occurs twice.
fn repeated(term: &[char]) -> Option<(usize, usize)> {
    term.iter().enumerate().find_map(|(first, letter)| {
        let second = term.iter().skip(first.saturating_add(1)).position(|other| other == letter)?;
        Some((first, second.saturating_add(first).saturating_add(1)))
    })
}
