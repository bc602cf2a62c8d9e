//! Reading the lines.

use edgepack_executor::tensor::Scalar;

use super::tensors::{DTYPES, dtype_name};
use super::{Example, Open, Pattern, Token, Values};

const TEXT: &str = include_str!("../../data/operators/examples.txt");

/// Every example, in order.
pub fn all() -> Vec<Example> {
    let (mut library, mut examples) = (String::new(), Vec::new());
    for (index, line) in TEXT.lines().enumerate() {
        // A heading is one word; other lines behind a `#` explain.
        if let Some(heading) = line.strip_prefix("# ").filter(|heading| !heading.contains(' ')) {
            library = heading.to_owned();
        }
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let (name, rest) = line.split_once(' ').unwrap_or_else(|| panic!("line {}: only a name", index + 1));
        let (arguments, outs) = rest.split_once("->").unwrap_or((rest, ""));
        let (arguments, outs) = (tokens(arguments), tokens(outs));
        examples.extend(names(name).into_iter().map(|name| Example {
            line: index + 1,
            library: library.clone(),
            name,
            arguments: arguments.clone(),
            outs: outs.clone(),
        }));
    }
    examples
}

/// The names that `{a,b}` expands to. Where it occurs twice, the two go together.
fn names(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (choices, after) = rest.split_once('}').expect("a closing brace");
    let pick = |choice: &str| match after.split_once('{') {
        Some((middle, _)) => format!("{before}{choice}{middle}{choice}"),
        None => format!("{before}{choice}{after}"),
    };
    choices.split(',').map(pick).collect()
}

pub(super) fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

fn tokens(text: &str) -> Vec<Token> {
    let mut words = text.split_whitespace();
    let mut tokens = Vec::new();
    while let Some(word) = words.next() {
        let Some(first) = word.strip_prefix('{') else {
            tokens.push(token(word));
            continue;
        };
        let (mut items, mut item) = (Vec::new(), first);
        loop {
            let last = item.strip_suffix('}');
            items.push(match last.unwrap_or(item) {
                "none" => None,
                tensor => Some(pattern(tensor)),
            });
            if last.is_some() {
                break;
            }
            item = words.next().expect("a closing brace");
        }
        tokens.push(Token::Tensors(items));
    }
    tokens
}

fn token(word: &str) -> Token {
    match word {
        "none" => Token::None,
        "true" | "false" => Token::Bool(word == "true"),
        "%" => Token::Type,
        "int" => Token::Number(Scalar::Int(0)),
        "double" => Token::Number(Scalar::Double(0.0)),
        "bool" => Token::Number(Scalar::Bool(false)),
        _ => match word.as_bytes()[0] {
            b'"' => Token::Text(word.trim_matches('"').to_owned()),
            b'[' => Token::List(items(word.trim_matches(['[', ']'])).map(str::to_owned).collect()),
            b'-' | b'0'..=b'9' => match word.parse() {
                Ok(whole) => Token::Int(whole),
                Err(_) => Token::Double(number(word)),
            },
            _ => Token::Tensor(pattern(word)),
        },
    }
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|item| !item.is_empty())
}

/// Two digits a byte.
fn bytes(digits: &[u8]) -> impl Iterator<Item = f64> {
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("a hexadecimal digit");
    digits.chunks(2).map(move |pair| pair.iter().fold(0, |byte, &next| byte * 16 + digit(next)).into())
}

fn pattern(word: &str) -> Pattern {
    let (dtype, rest) = word.split_once('[').unwrap_or_else(|| panic!("{word} has no sizes"));
    let (sizes, values) = rest.split_once(']').unwrap_or_else(|| panic!("{word} has no end of sizes"));
    let open = match dtype {
        "%" => Open::Tried,
        "^" => Open::Sum,
        "/" => Open::Quotient,
        "$" => Open::Complex,
        "@" => Open::Real,
        name => match DTYPES.iter().find(|dtype| dtype_name(**dtype) == name) {
            Some(dtype) => Open::Is(*dtype),
            None => panic!("{name} is not a type"),
        },
    };
    let digits = values.strip_prefix("=x").map(str::as_bytes);
    let values = match values.strip_prefix('=') {
        _ if digits.is_some() => Values::These(digits.into_iter().flat_map(bytes).collect()),
        Some(list) => Values::These(items(list).map(number).collect()),
        None if values == "!" => Values::NotZero,
        None => Values::Small,
    };
    Pattern { open, sizes: items(sizes).map(|size| number(size) as usize).collect(), values }
}
