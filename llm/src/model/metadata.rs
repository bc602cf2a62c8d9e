//! Facts that a program states about its model, as methods that take nothing and return numbers.

use edgepack_executor::{Method, Options, Output, Registry};
use edgepack_format::scalar::ScalarType;
use edgepack_loader::Program;

use crate::error::Error;

/// The longest context that a program may state: 16 million tokens.
pub const MOST_CONTEXT: usize = 1 << 24;

/// The most end tokens that a program may state.
const MOST_EOS: usize = 4096;

/// Facts a program states about itself; `None` where it is silent.
///
/// The names of the methods are those of the reference exporter: `get_max_seq_len`, `get_max_context_len`,
/// `get_vocab_size`, `get_n_layers`, `get_bos_id`, `get_eos_ids` (or `get_eos_id`, of older ones), `use_kv_cache`, `use_sdpa_with_kv_cache`,
/// `enable_dynamic_shape`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// Tokens that one call may take at most.
    pub max_seq_len: Option<usize>,
    /// Tokens that a session has room for.
    pub max_context_len: Option<usize>,
    /// Tokens in the vocabulary.
    pub vocab_size: Option<usize>,
    /// Layers of the model.
    pub n_layers: Option<usize>,
    /// The token in front of every text.
    pub bos_id: Option<u32>,
    /// The tokens that end a text; none if the program is silent.
    pub eos_ids: Vec<u32>,
    /// True if calls share a cache of keys and values.
    pub use_kv_cache: Option<bool>,
    /// True if attention and cache are operators of their own.
    pub use_sdpa_with_kv_cache: Option<bool>,
    /// True if the number of tokens of a call may vary.
    pub enable_dynamic_shape: Option<bool>,
}

impl Metadata {
    /// Runs the metadata methods that a program has.
    ///
    /// # Errors
    ///
    /// One of them takes inputs, cannot be run, or returns what it cannot mean.
    pub fn read(program: &Program, registry: &Registry, options: &Options) -> Result<Self, Error> {
        let reader = Reader { program, registry, options, names: program.method_names()? };
        let metadata = Metadata {
            max_seq_len: reader.count("get_max_seq_len", MOST_CONTEXT)?,
            max_context_len: reader.count("get_max_context_len", MOST_CONTEXT)?,
            vocab_size: reader.count("get_vocab_size", u32::MAX as usize)?,
            n_layers: reader.count("get_n_layers", MOST_CONTEXT)?,
            bos_id: match reader.number("get_bos_id")? {
                Some(id) => Some(token("get_bos_id", id)?),
                None => None,
            },
            eos_ids: match reader.tokens("get_eos_ids")? {
                Some(ids) => ids,
                None => reader.tokens("get_eos_id")?.unwrap_or_default(),
            },
            use_kv_cache: reader.flag("use_kv_cache")?,
            use_sdpa_with_kv_cache: reader.flag("use_sdpa_with_kv_cache")?,
            enable_dynamic_shape: reader.flag("enable_dynamic_shape")?,
        };
        metadata.check()?;
        Ok(metadata)
    }

    /// Refuses facts that contradict each other.
    fn check(&self) -> Result<(), Error> {
        if let (Some(call), Some(context)) = (self.max_seq_len, self.max_context_len)
            && call > context
        {
            let message = format!("{call}, more than the {context} of `get_max_context_len`");
            return Err(Error::metadata("get_max_seq_len", message));
        }
        if (self.use_sdpa_with_kv_cache, self.use_kv_cache) == (Some(true), Some(false)) {
            return Err(Error::metadata("use_sdpa_with_kv_cache", "true, but `use_kv_cache` is false"));
        }
        if let Some(size) = self.vocab_size {
            self.check_tokens(size)?;
        }
        Ok(())
    }

    /// Refuses tokens outside of a vocabulary of this size.
    pub(super) fn check_tokens(&self, size: usize) -> Result<(), Error> {
        let named =
            self.bos_id.iter().map(|id| ("get_bos_id", id)).chain(self.eos_ids.iter().map(|id| ("get_eos_ids", id)));
        for (name, &id) in named {
            if id as usize >= size {
                return Err(Error::metadata(name, format!("token {id} of a vocabulary of {size}")));
            }
        }
        Ok(())
    }
}

fn token(name: &str, id: i64) -> Result<u32, Error> {
    // The greatest number stands for "not a token" in sessions.
    u32::try_from(id)
        .ok()
        .filter(|&id| id != u32::MAX)
        .ok_or_else(|| Error::metadata(name, format!("{id} is not a token")))
}

struct Reader<'a> {
    program: &'a Program,
    registry: &'a Registry,
    options: &'a Options,
    names: Vec<String>,
}

impl Reader<'_> {
    /// Values that a method returns, in order; `None` if there is no such method.
    fn values(&self, name: &str) -> Result<Option<Vec<i64>>, Error> {
        if !self.names.iter().any(|known| known == name) {
            return Ok(None);
        }
        let mut method =
            Method::load(self.program, name, self.registry, self.options).map_err(|error| Error::load(name, error))?;
        if method.input_count() != 0 {
            return Err(Error::metadata(name, format!("it takes {} inputs, metadata take none", method.input_count())));
        }
        let no_inputs: [edgepack_executor::Input<'_>; 0] = [];
        let outputs = method.run(&no_inputs).map_err(|error| Error::run(name, error))?;
        let mut values = Vec::new();
        for output in outputs.iter() {
            let wrong = |what: &str| Err(Error::metadata(name, format!("it returns {what}, not whole numbers")));
            match output {
                Output::Int(value) => values.push(value),
                Output::Bool(value) => values.push(value.into()),
                Output::Tensor(tensor) if tensor.element_count() > MOST_EOS => return wrong("a large tensor"),
                Output::Tensor(tensor) => match tensor.dtype {
                    ScalarType::LONG => values.extend(tensor.as_slice::<i64>().unwrap_or_default()),
                    ScalarType::INT => {
                        values
                            .extend(tensor.as_slice::<i32>().unwrap_or_default().iter().map(|&value| i64::from(value)));
                    }
                    other => return wrong(&format!("a tensor of {other}")),
                },
                Output::Null => return wrong("None"),
                Output::Double(_) => return wrong("a double"),
                Output::Text(_) => return wrong("text"),
                Output::List(_) => return wrong("a list"),
            }
            if values.len() > MOST_EOS {
                return wrong("too many values");
            }
        }
        Ok(Some(values))
    }

    fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.values(name)?.as_deref() {
            None => Ok(None),
            Some([value]) => Ok(Some(*value)),
            Some(values) => Err(Error::metadata(name, format!("it returns {} values instead of one", values.len()))),
        }
    }

    fn count(&self, name: &str, most: usize) -> Result<Option<usize>, Error> {
        let Some(value) = self.number(name)? else { return Ok(None) };
        match usize::try_from(value) {
            Ok(value) if (1..=most).contains(&value) => Ok(Some(value)),
            _ => Err(Error::metadata(name, format!("{value}, it can be 1 to {most}"))),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        match self.number(name)? {
            None => Ok(None),
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            Some(other) => Err(Error::metadata(name, format!("{other}, it can be 0 or 1"))),
        }
    }

    fn tokens(&self, name: &str) -> Result<Option<Vec<u32>>, Error> {
        let Some(values) = self.values(name)? else { return Ok(None) };
        values.into_iter().map(|id| token(name, id)).collect::<Result<_, _>>().map(Some)
    }
}
