//! Templates as they are run: the functions and filters that real ones use, within bounds.

use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{AutoEscape, Environment, ErrorKind, State};

use super::{Error, python};

/// Longest template, in bytes.
pub(super) const MOST_SOURCE: usize = 1 << 20;
/// Fuel of a rendering, apart from that for the conversation; 64 bytes of text cost one.
const FUEL: u64 = 1_000_000;
/// Deepest nesting of macros.
const RECURSION: usize = 64;
/// Beginning of the message of an error that the template raised itself.
const RAISED: &str = "raised by the template: ";

/// Compiled templates.
#[derive(Debug)]
pub(super) struct Engine {
    environment: Environment<'static>,
}

impl Engine {
    /// Compiles templates.
    pub fn new(templates: &[(String, String)]) -> Result<Self, Error> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| Error::Syntax(error.to_string()))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_recursion_limit(RECURSION);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_formatter(|out, state, value| match python::plain(value) {
            Some(text) => out.write_str(text).map_err(minijinja::Error::from),
            None => minijinja::escape_formatter(out, state, value),
        });
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |message: String| -> Result<Value, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
        });
        for (name, source) in templates {
            if source.len() > MOST_SOURCE {
                return Err(Error::TooLong { bytes: source.len() as u64, most: MOST_SOURCE as u64 });
            }
            environment
                .add_template_owned(name.clone(), without_generation(source))
                .map_err(|error| Error::Syntax(format!("{error:#}")))?;
        }
        Ok(Self { environment })
    }

    /// Renders a template; `bytes` is the length of what is in the context.
    pub fn render(&self, name: &str, context: Value, bytes: usize, now: SystemTime) -> Result<String, Error> {
        let mut environment = self.environment.clone();
        // As much again as copying the conversation sixty-four times.
        environment.set_fuel(Some(FUEL.saturating_add(bytes as u64)));
        environment.add_function("strftime_now", move |format: String| time(&format, now));
        let template = environment.get_template(name).map_err(|error| Error::Render(error.to_string()))?;
        template.render(context).map_err(|error| {
            // The cause that the template gave may be wrapped in others.
            let raised = |error: &minijinja::Error| {
                error.detail().and_then(|detail| Some(detail.split_once(RAISED)?.1.to_owned()))
            };
            let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
            while let Some(inner) = cause {
                if let Some(inner) = inner.downcast_ref::<minijinja::Error>() {
                    if let Some(message) = raised(inner) {
                        return Error::Refused(message);
                    }
                    if inner.kind() == ErrorKind::OutOfFuel {
                        return Error::Exhausted { bytes };
                    }
                }
                cause = inner.source();
            }
            Error::Render(error.to_string())
        })
    }
}

/// The filter `tojson`, as Hugging Face has it: nothing is escaped for HTML.
fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<usize>,
    kwargs: Kwargs,
) -> Result<String, minijinja::Error> {
    let indent = kwargs.get::<Option<usize>>("indent")?.or(indent);
    let _: Option<bool> = kwargs.get("ensure_ascii")?;
    kwargs.assert_all_used()?;
    if indent.is_some_and(|indent| indent > 16) {
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, "an indentation of more than 16 spaces"));
    }
    let text = python::json(value, indent)?;
    state.consume_fuel(text.len() as u64 / 64)?;
    Ok(text)
}

fn time(format: &str, now: SystemTime) -> Result<String, minijinja::Error> {
    let wrong = |error: jiff::Error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string());
    if format.len() > 256 {
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, "a format of a time of more than 256 bytes"));
    }
    let now = jiff::Timestamp::try_from(now).map_err(wrong)?.to_zoned(jiff::tz::TimeZone::UTC);
    jiff::fmt::strtime::format(format, &now).map_err(wrong)
}

/// Blocks that mark what an assistant said, for training, become blocks that do nothing.
fn without_generation(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, behind)) = rest.split_once("{%") {
        out.push_str(before);
        out.push_str("{%");
        rest = behind;
        let Some((tag, behind)) = behind.split_once("%}") else { break };
        let name = tag.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        let replacement = match name {
            "generation" => "if true",
            "endgeneration" => "endif",
            _ => continue,
        };
        out.push_str(&tag.replace(name, replacement));
        out.push_str("%}");
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::without_generation;

    #[test]
    fn marks_of_training_do_nothing() {
        let source = "a{%- generation -%}{{ x }}{% endgeneration %}{% if y %}z{% endif %}";
        assert_eq!(without_generation(source), "a{%- if true -%}{{ x }}{% endif %}{% if y %}z{% endif %}");
    }
}
