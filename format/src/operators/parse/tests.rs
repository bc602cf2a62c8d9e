use super::*;
use crate::operators::{Operator, in_programs};

fn parse(text: &str) -> Schema<'_> {
    match Schema::parse(text) {
        Ok(schema) => schema,
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn a_whole_schema() {
    let schema = parse("aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)");
    assert_eq!((schema.full_name(), schema.name(), schema.overload()), ("aten::add.out", "aten::add", "out"));
    let names: Vec<_> = schema.args().iter().map(|arg| (arg.name, arg.kw_only, arg.mutated)).collect();
    let expected = [("self", false, false), ("other", false, false), ("alpha", true, false), ("out", true, true)];
    assert_eq!(names, expected);
    assert_eq!(schema.args()[2].default, Some(Literal::Int(1)));
    assert_eq!(schema.args()[3].alias, "a");
    let [result] = schema.returns() else { panic!("one result") };
    assert_eq!((result.name, result.kind, result.alias, result.mutated), ("", ArgumentKind::Tensor, "a", true));
}

#[test]
fn types() {
    let plain = parse("n::f(Tensor x) -> ()").args()[0];
    let list = |len, optional_items| Some(List { len, optional_items });
    for (text, expected) in [
        ("Tensor?", Argument { optional: true, ..plain }),
        ("Tensor[]", Argument { list: list(None, false), ..plain }),
        ("Tensor?[]", Argument { list: list(None, true), ..plain }),
        ("Tensor?[]?", Argument { list: list(None, true), optional: true, ..plain }),
        ("int[2]", Argument { kind: ArgumentKind::Int, list: list(Some(2), false), ..plain }),
        ("int[1]?", Argument { kind: ArgumentKind::Int, list: list(Some(1), false), optional: true, ..plain }),
        ("float[]?", Argument { kind: ArgumentKind::Float, list: list(None, false), optional: true, ..plain }),
        ("SymInt[]", Argument { kind: ArgumentKind::SymInt, list: list(None, false), ..plain }),
        ("ScalarType?", Argument { kind: ArgumentKind::ScalarType, optional: true, ..plain }),
        ("Tensor(a!)[]", Argument { list: list(None, false), alias: "a", mutated: true, ..plain }),
        ("Tensor(a!)?", Argument { alias: "a", mutated: true, optional: true, ..plain }),
        ("Tensor(a -> *)", Argument { alias: "a", ..plain }),
        ("Tensor(a|b)", Argument { alias: "a|b", ..plain }),
        ("__torch__.Thing", Argument { kind: ArgumentKind::Other("__torch__.Thing"), ..plain }),
    ] {
        let text = alloc::format!("n::f({text} x) -> ()");
        assert_eq!(parse(&text).args(), [expected], "{text}");
    }
}

#[test]
fn defaults() {
    for (text, expected) in [
        ("None", Literal::None),
        ("True", Literal::Bool(true)),
        ("-1", Literal::Int(-1)),
        ("9223372036854775807", Literal::Int(i64::MAX)),
        ("0.01", Literal::Float(0.01)),
        ("2.", Literal::Float(2.0)),
        ("1e-05", Literal::Float(1e-5)),
        ("-inf", Literal::Float(f64::NEG_INFINITY)),
        ("\"none\"", Literal::Str("none")),
        ("'none'", Literal::Str("none")),
        ("contiguous_format", Literal::Name("contiguous_format")),
        ("[]", Literal::List("")),
        ("[0, 1.5,True]", Literal::List("0, 1.5,True")),
    ] {
        let text = alloc::format!("n::f(int x={text}, int y=7) -> ()");
        let schema = parse(&text);
        assert_eq!(schema.args()[0].default, Some(expected), "{text}");
        assert_eq!(schema.args()[1].default, Some(Literal::Int(7)), "{text}");
    }
    let items: Vec<_> = Literal::List("0, 1.5,True").items().collect();
    assert_eq!(items, [Literal::Int(0), Literal::Float(1.5), Literal::Bool(true)]);
    assert_eq!(Literal::List("").items().count(), 0);
    assert_eq!(Literal::Int(1).items().count(), 0);
}

#[test]
fn results() {
    let schema = parse("n::f(Tensor x) -> (Tensor(a!) values, Tensor(b!) indices)");
    let names: Vec<_> = schema.returns().iter().map(|result| (result.name, result.alias)).collect();
    assert_eq!(names, [("values", "a"), ("indices", "b")]);
    assert_eq!(parse("n::f() -> ()").returns(), []);
    assert_eq!(parse("n::f() -> Tensor[]").returns().len(), 1);
    assert_eq!(parse(" n::f ( int x ) -> ( int , int ) ").returns().len(), 2);
}

#[test]
fn errors_say_what_and_where() {
    use SchemaErrorKind as Kind;
    for (text, kind, position) in [
        ("", Kind::Name, 0),
        ("add(Tensor x) -> Tensor", Kind::Name, 3),
        ("aten::(Tensor x) -> Tensor", Kind::Name, 6),
        ("aten::add.(Tensor x) -> Tensor", Kind::Overload, 10),
        ("aten::add", Kind::Text("("), 9),
        ("aten::add(Tensor)", Kind::ArgumentName, 16),
        ("aten::add(Tensor x", Kind::Text(","), 18),
        ("aten::add(Tensor x,) -> ()", Kind::Type, 19),
        ("aten::add(*) -> ()", Kind::Text(","), 11),
        ("aten::add(*, *, int x) -> ()", Kind::Type, 13),
        ("aten::add(Tensor x) Tensor", Kind::Text("->"), 20),
        ("aten::add(Tensor x) -> ", Kind::Type, 23),
        ("aten::add(Tensor x) -> Tensor y z", Kind::End, 32),
        ("aten::add(int[x] x) -> ()", Kind::ListLength, 14),
        ("aten::add(int[99999999999] x) -> ()", Kind::ListLength, 14),
        ("aten::add(int[][] x) -> ()", Kind::UnsupportedType, 15),
        ("aten::add(int?? x) -> ()", Kind::UnsupportedType, 14),
        ("aten::add(Tensor(a)(b) x) -> ()", Kind::UnsupportedType, 19),
        ("aten::add(Tensor() x) -> ()", Kind::Type, 17),
        ("aten::add(int x=) -> ()", Kind::Default, 16),
        ("aten::add(int x=1.2.3) -> ()", Kind::Default, 16),
        ("aten::add(str x=\"y) -> ()", Kind::Default, 16),
        ("aten::add(int x=[1 2]) -> ()", Kind::Text(","), 19),
        ("aten::add(Tensor ü) -> ()", Kind::ArgumentName, 17),
    ] {
        assert_eq!(Schema::parse(text), Err(SchemaError { kind, position }), "{text}");
    }
}

/// Every prefix of a schema, and every schema with one byte replaced, is answered; what parses names itself by its own
/// beginning.
#[test]
fn damaged_schemas_are_answered() {
    let mut accepted = 0;
    for text in in_programs().map(Operator::schema).step_by(9) {
        for end in 0..text.len() {
            if let Ok(schema) = Schema::parse(&text[..end]) {
                assert!(text.starts_with(schema.full_name()));
                accepted += 1;
            }
            for byte in ["", "(", ")", "[", "]", "?", "!", ",", "=", ".", "-", "\"", "*", "0", "ü", "\u{0}"] {
                let damaged = [&text[..end], byte, &text[end + 1..]].concat();
                match Schema::parse(&damaged) {
                    Ok(schema) => assert!(damaged.contains(schema.full_name())),
                    Err(error) => assert!(error.position <= damaged.len()),
                }
            }
        }
    }
    // Prefixes that end inside a single result are schemas too; those that end anywhere else are not.
    assert!(accepted > 0 && accepted < in_programs().count(), "{accepted}");
}
