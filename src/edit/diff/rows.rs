//! Two tapes, place by place.

use edgepack_format::notation::Counted;

use super::Differences;
use super::tape::{Names, Node, fields, items, read};

/// Characters of a value that are shown.
const MOST: usize = 60;
/// Characters before the first difference of long ones.
const BEFORE: usize = 12;

/// Walks two values and notes where they differ.
pub(super) fn compare(path: &str, a: &[u8], b: &[u8], names: &Names, out: &mut Differences) {
    if a == b {
        return;
    }
    match (read(a).0, read(b).0) {
        (Node::Object(a), Node::Object(b)) => {
            let (a, b) = (by_name(a, names), by_name(b, names));
            let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            // What only the second has comes last.
            let added = b.iter().filter(|(name, _)| of(&a, name).is_none());
            for name in a.iter().chain(added).map(|(name, _)| *name) {
                // No bytes are nothing.
                let (ours, theirs) = (of(&a, name).unwrap_or_default(), of(&b, name).unwrap_or_default());
                compare(&below(name), ours, theirs, names, out);
            }
        }
        (Node::List(a), Node::List(b)) if are_objects(a) && are_objects(b) => {
            let (mut ours, mut theirs) = (items(a), items(b));
            let (mut left, mut right) = (0usize, 0usize);
            loop {
                let pair = (ours.next(), theirs.next());
                left += usize::from(pair.0.is_some());
                right += usize::from(pair.1.is_some());
                match pair {
                    (Some(a), Some(b)) if a == b => {}
                    (Some(a), Some(b)) => compare(&format!("{path}[{}]", left - 1), a, b, names, out),
                    (None, None) => break,
                    _ => {}
                }
            }
            if left != right {
                out.push(path.to_owned(), Counted(left, "item").to_string(), Counted(right, "item").to_string());
            }
        }
        (a, b) => {
            let (a, b) = shown(a, b, names);
            out.push(path.to_owned(), a, b);
        }
    }
}

/// The value of a field.
fn of<'t>(fields: &[(&str, &'t [u8])], name: &str) -> Option<&'t [u8]> {
    fields.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

fn are_objects(list: &[u8]) -> bool {
    items(list).all(|item| matches!(read(item).0, Node::Object(_)))
}

/// Fields by name; the same order for both sides.
pub(super) fn by_name<'t>(object: &'t [u8], names: &'t Names) -> Vec<(&'t str, &'t [u8])> {
    let mut list: Vec<_> = fields(object).map(|(name, value)| (names.get(name), value)).collect();
    list.sort_unstable_by_key(|(name, _)| *name);
    list
}

/// A stretch of text, and whether something is before and behind it.
struct Window {
    text: String,
    before: bool,
    behind: bool,
}

/// Two values on a line each, from where they begin to differ if they are long. Of long ones only what is near the
/// difference is made text of.
fn shown(a: Node<'_>, b: Node<'_>, names: &Names) -> (String, String) {
    let (a, b) = match (a, b) {
        (Node::List(a), Node::List(b)) => {
            let same = items(a).zip(items(b)).take_while(|(a, b)| a == b).count();
            (list_near(a, same, names), list_near(b, same, names))
        }
        (Node::Long(a), Node::Long(b)) => {
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            (text_near(a, same), text_near(b, same))
        }
        (a, b) => (start_of(a, names), start_of(b, names)),
    };
    let same = a.text.chars().zip(b.text.chars()).take_while(|(a, b)| a == b).count();
    let cut = |window: &Window| {
        let count = window.text.chars().count();
        let long = window.before || window.behind || count > MOST;
        let skip = if long { same.saturating_sub(BEFORE) } else { 0 };
        let text: String = window.text.chars().skip(skip).take(MOST).collect();
        let (before, behind) = (window.before || skip > 0, window.behind || count > skip + MOST);
        format!("{}{text}{}", if before { "…" } else { "" }, if behind { "…" } else { "" })
    };
    (cut(&a), cut(&b))
}

/// Returns the start of the window around item or character `at`. Only a value too long to be shown whole is cut.
fn window_start(at: usize) -> usize {
    if at > MOST { at - BEFORE } else { 0 }
}

/// The items of a list around one of them. Each has a character and a comma at least.
fn list_near(list: &[u8], at: usize, names: &Names) -> Window {
    let from = window_start(at);
    let mut text = if from == 0 { "[".to_owned() } else { String::new() };
    let mut rest = items(list).skip(from);
    for (index, item) in rest.by_ref().take(MOST + MOST).enumerate() {
        if from + index > 0 {
            text.push(',');
        }
        json(read(item).0, names, &mut text);
    }
    let behind = rest.next().is_some();
    if !behind {
        text.push(']');
    }
    Window { text, before: from > 0, behind }
}

/// The characters of a long text around one of them.
fn text_near(text: &str, at: usize) -> Window {
    let from = window_start(at);
    let mut rest = text.chars().skip(from);
    let part: String = rest.by_ref().take(MOST + MOST).collect();
    let behind = rest.next().is_some();
    let mut quoted = serde_json::Value::from(part).to_string();
    if from > 0 {
        quoted.remove(0);
    }
    if behind {
        quoted.pop();
    }
    Window { text: quoted, before: from > 0, behind }
}

/// The start of a value of any kind.
fn start_of(node: Node<'_>, names: &Names) -> Window {
    match node {
        Node::List(list) => list_near(list, 0, names),
        Node::Long(text) => text_near(text, 0),
        Node::Null => Window { text: "absent".to_owned(), before: false, behind: false },
        node => {
            let mut text = String::new();
            json(node, names, &mut text);
            Window { text, before: false, behind: false }
        }
    }
}

/// Appends a value as JSON, fields by name.
pub(super) fn json(node: Node<'_>, names: &Names, out: &mut String) {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Node::Number(value) => out.push_str(&value.to_string()),
        Node::Negative(value) => out.push_str(&(!(value as i64)).to_string()),
        Node::Float(value) => out.push_str(&serde_json::Value::from(value).to_string()),
        Node::Short(number) => out.push_str(&text(names.get(number))),
        Node::Long(value) => out.push_str(&text(value)),
        Node::List(list) => {
            out.push('[');
            for (index, item) in items(list).enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                json(read(item).0, names, out);
            }
            out.push(']');
        }
        Node::Object(object) => {
            out.push('{');
            for (index, (name, value)) in by_name(object, names).into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(&text(name));
                out.push(':');
                json(read(value).0, names, out);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(a: &Value, b: &Value) -> Vec<(String, String, String)> {
        let mut names = Names::default();
        let (a, b) = (names.tape(a).unwrap(), names.tape(b).unwrap());
        let mut out = Differences::default();
        compare("", &a, &b, &names, &mut out);
        out.list.into_iter().map(|one| (one.path, one.left, one.right)).collect()
    }

    #[test]
    fn differences_are_named_by_place_and_shown_where_they_begin() {
        let rows = |changed: i32| json!({ "b": [{ "x": 1 }, { "x": changed }], "a": null });
        assert_eq!(found(&rows(2), &rows(2)), []);
        assert_eq!(found(&rows(2), &rows(3)), [("b[1].x".into(), "2".into(), "3".into())]);
        let absent = found(&json!({ "a": [] }), &json!({ "b": { "c": "d" } }));
        assert_eq!(
            absent,
            [("a".into(), "[]".into(), "absent".into()), ("b".into(), "absent".into(), "{\"c\":\"d\"}".into())]
        );
        let items = found(&json!([{}, {}]), &json!([{}]));
        assert_eq!(items, [("".into(), "2 items".into(), "1 item".into())]);
    }

    /// Compares the difference of two whole texts with the one made from a stretch of them.
    #[test]
    fn long_values_are_cut_near_the_difference() {
        fn whole(a: &Value, b: &Value) -> (String, String) {
            let (a, b) = (a.to_string(), b.to_string());
            let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
            let cut = |text: &str| {
                let skip = if text.chars().count() > MOST { same.saturating_sub(BEFORE) } else { 0 };
                let shown: String = text.chars().skip(skip).take(MOST).collect();
                let more = text.chars().count() > skip + MOST;
                format!("{}{shown}{}", if skip > 0 { "…" } else { "" }, if more { "…" } else { "" })
            };
            (cut(&a), cut(&b))
        }
        for len in [1usize, 5, 29, 30, 31, 60, 74, 1000] {
            for at in [0, 1.min(len - 1), len / 2, len - 1] {
                let list = |value: u64| -> Value {
                    (0..len).map(|index| if index == at { value } else { index as u64 % 10 }).collect()
                };
                let (a, b) = (list(11), list(12));
                let (left, right) = whole(&a, &b);
                assert_eq!(found(&a, &b), [(String::new(), left, right)], "{len} numbers, {at}");
                let text = |value: char| -> Value {
                    let text: String = (0..len + 300).map(|index| if index == at { value } else { '"' }).collect();
                    text.into()
                };
                let (a, b) = (text('x'), text('y'));
                let (left, right) = whole(&a, &b);
                assert_eq!(found(&a, &b), [(String::new(), left, right)], "{len} characters, {at}");
            }
        }
    }
}
