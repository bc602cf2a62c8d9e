//! Functions that a C file defines: enough of the language to tell a definition from a declaration, without running a
//! preprocessor. Linear in the text. Generated code needs no more; where a file defines macros that take arguments,
//! what it defines is not known.

use alloc::string::String;
use alloc::vec::Vec;

use crate::room;

/// A function with a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Symbol of the function.
    pub name: String,
    /// True if other files cannot see the function.
    pub is_static: bool,
}

/// Words in front of a parenthesis that name no function.
const NO_NAMES: [&[u8]; 6] =
    [b"__attribute__", b"__declspec", b"__asm__", b"_Alignas", b"_Static_assert", b"__typeof__"];

/// The functions that a file defines, in order.
pub fn definitions(source: &[u8]) -> room::Result<Vec<Definition>> {
    let mut scan = Scan { source, at: 0, found: Ok(Vec::new()), braces: 0, parens: 0, statement: Statement::default() };
    scan.run();
    scan.found
}

/// Returns whether a file defines macros that take arguments, so that it may define other functions than it seems.
pub fn has_function_macros(source: &[u8]) -> bool {
    source.split(|byte| *byte == b'\n').any(|line| {
        let rest = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
        let name = rest.and_then(|rest| rest.strip_prefix(b"define")).map(<[u8]>::trim_ascii_start).unwrap_or_default();
        let end = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        end.is_some_and(|end| name.get(end) == Some(&b'('))
    })
}

/// Words and marks since the last statement at the outermost level.
#[derive(Default)]
struct Statement<'s> {
    word: Option<&'s [u8]>,
    function: Option<&'s [u8]>,
    is_static: bool,
    is_extern: bool,
    assigned: bool,
}

struct Scan<'s> {
    source: &'s [u8],
    at: usize,
    found: room::Result<Vec<Definition>>,
    braces: usize,
    parens: usize,
    statement: Statement<'s>,
}

impl<'s> Scan<'s> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at.saturating_add(ahead)).copied()
    }

    fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.source.len());
    }

    fn run(&mut self) {
        let mut fresh_line = true;
        while let Some(byte) = self.byte(0) {
            let was_fresh = fresh_line;
            fresh_line = byte == b'\n' || (fresh_line && byte.is_ascii_whitespace());
            match (byte, self.byte(1)) {
                (b'#', _) if was_fresh => self.line(),
                (b'/', Some(b'/')) => self.line(),
                (b'/', Some(b'*')) => self.comment(),
                (b'"' | b'\'', _) => self.quoted(byte),
                (b'a'..=b'z' | b'A'..=b'Z' | b'_', _) => self.word(),
                (b'0'..=b'9', _) => self.number(),
                _ => {
                    self.mark(byte);
                    self.skip(1);
                }
            }
        }
    }

    /// To the end of a line that a backslash may continue.
    fn line(&mut self) {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\\' => self.skip(2),
                b'\n' => return,
                _ => self.skip(1),
            }
        }
    }

    fn comment(&mut self) {
        self.skip(2);
        while let Some(byte) = self.byte(0) {
            if byte == b'*' && self.byte(1) == Some(b'/') {
                return self.skip(2);
            }
            self.skip(1);
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.skip(1);
        while let Some(byte) = self.byte(0) {
            self.skip(if byte == b'\\' { 2 } else { 1 });
            if byte == quote {
                return;
            }
        }
    }

    fn number(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_') {
            self.skip(1);
        }
    }

    fn word(&mut self) {
        let start = self.at;
        while self.byte(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.skip(1);
        }
        if self.braces > 0 || self.parens > 0 {
            return;
        }
        let word = self.source.get(start..self.at).unwrap_or_default();
        self.statement.is_static |= word == b"static";
        self.statement.is_extern |= word == b"extern";
        self.statement.word = Some(word);
    }

    fn mark(&mut self, byte: u8) {
        match byte {
            b'(' if self.braces == 0 => {
                if self.parens == 0 {
                    let name = self.statement.word.take().filter(|word| !NO_NAMES.contains(word));
                    self.statement.function = self.statement.function.or(name);
                }
                self.parens = self.parens.saturating_add(1);
            }
            b')' if self.braces == 0 => self.parens = self.parens.saturating_sub(1),
            b'=' if self.braces == 0 && self.parens == 0 => self.statement.assigned = true,
            b';' if self.braces == 0 && self.parens == 0 => self.statement = Statement::default(),
            b'{' => self.open(),
            b'}' => {
                self.braces = self.braces.saturating_sub(1);
                if self.braces == 0 {
                    self.statement = Statement::default();
                    self.parens = 0;
                }
            }
            _ => {}
        }
    }

    fn open(&mut self) {
        if self.braces == 0 && self.parens == 0 {
            match self.statement.function.filter(|_| !self.statement.assigned) {
                Some(name) => {
                    let name = String::from_utf8_lossy(name).into_owned();
                    let definition = Definition { name, is_static: self.statement.is_static };
                    if let Ok(list) = &mut self.found
                        && let Err(error) = room::push(list, definition)
                    {
                        self.found = Err(error);
                    }
                }
                // A linkage block: what is in it is at the outermost level.
                None if self.statement.is_extern && self.statement.word == Some(b"extern") => {
                    self.statement = Statement::default();
                    return;
                }
                None => {}
            }
        }
        self.braces = self.braces.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn definitions_are_told_from_declarations() {
        let source = br#"
            // int comment(void) {
            #define macro(x) \
                int in_macro(void) {
            #ifdef __cplusplus
            extern "C"
            #endif
            TVM_DLL int32_t first(void* args, int32_t n) {
              if (call(args)) { return '"'; } const char* s = "} int text(void) {";
            }
            int declared(int (*f)(int), char c);
            static inline __attribute__((noinline)) int hidden(void) { return 1; }
            extern "C" {
            int in_block(void)
            { }
            }
            __attribute__((section(".x"), aligned(16), )) static struct s table = { { f(1) } };
            static const float weights[2] = {0x1p+0, 1.0e+3f};
            struct shape { int rank; };
            int last(void) __attribute__((cold)) {}
        "#;
        let found: Vec<(String, bool)> =
            definitions(source).unwrap().into_iter().map(|one| (one.name, one.is_static)).collect();
        let want = [("first", false), ("hidden", true), ("in_block", false), ("last", false)];
        assert_eq!(found, want.map(|(name, is_static)| (name.into(), is_static)));
    }

    #[test]
    fn macros_with_arguments_are_noticed() {
        assert!(has_function_macros(b"int x;\n  # define PACKED(name) int name(void)\n"));
        for plain in [&b"#define TVM_EXPORTS\n"[..], b"#define N (1)", b"// define(x)", b"#include <define(x)>"] {
            assert!(!has_function_macros(plain));
        }
    }

    #[test]
    fn any_bytes_are_scanned() {
        for source in [&b"/*"[..], b"\"\\", b"(((", b"}}}{{{", b"a(", b"#\\", b"\xff{"] {
            assert_eq!(definitions(source), Ok(vec![]));
        }
    }
}
