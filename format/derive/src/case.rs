//! `rename_all`: how names of fields and variants become keys.

use syn::LitStr;

/// Spelling of a name of several words.
#[derive(Clone, Copy)]
pub enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// Named as it writes.
    pub fn parse(name: &LitStr) -> syn::Result<Case> {
        let found = CASES.iter().find(|(known, _)| *known == name.value());
        found.map(|(_, case)| *case).ok_or_else(|| {
            let names: Vec<String> = CASES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            syn::Error::new_spanned(name, format!("expected one of {}", names.join(", ")))
        })
    }

    /// A `snake_case` or `PascalCase` name, in this spelling.
    pub fn apply(self, name: &str) -> String {
        let words = words(name);
        let capitalised = |word: &String| match word.chars().next() {
            Some(first) => first.to_uppercase().chain(word.chars().skip(1)).collect(),
            None => String::new(),
        };
        match self {
            Case::Lower => words.concat(),
            Case::Upper => words.concat().to_uppercase(),
            Case::Pascal => words.iter().map(capitalised).collect(),
            Case::Camel => {
                let (first, rest) = words.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                first.chars().chain(rest.iter().map(capitalised).collect::<String>().chars()).collect()
            }
            Case::Snake => words.join("_"),
            Case::ScreamingSnake => words.join("_").to_uppercase(),
            Case::Kebab => words.join("-"),
            Case::ScreamingKebab => words.join("-").to_uppercase(),
        }
    }
}

/// The words of a name, in lower case: split at underscores and before capitals.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    for c in name.chars() {
        let fresh = words.last().is_some_and(String::is_empty);
        if (c == '_' || c.is_uppercase()) && !fresh {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c != '_', words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_named_as_it_writes() {
        for (name, case) in CASES {
            // Two of the names have no mark between their words.
            let words = match case {
                Case::Lower => "lower_case".to_owned(),
                Case::Upper => "upper_case".to_owned(),
                _ if name.contains(['_', '-']) => name.to_lowercase().replace('-', "_"),
                _ => words(name).join("_"),
            };
            assert_eq!(case.apply(&words), name);
        }
    }

    #[test]
    fn variants_and_odd_names_have_words_too() {
        assert_eq!(Case::Snake.apply("HalfPrecision"), "half_precision");
        assert_eq!(Case::Kebab.apply("a__b2_"), "a-b2");
        assert_eq!(Case::Camel.apply("x"), "x");
        assert_eq!(Case::Pascal.apply("_"), "");
    }
}
