//! Language models: what `generate`, `chat`, `perplexity` and `bench --llm` share.

mod answer;
mod failure;
mod rates;
mod sampling;
mod saved;

use std::path::{Path, PathBuf};

use edgepack_format::FileKind;
use edgepack_llm::chat::ChatTemplate;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::tokenizer::tiktoken::{self, Tiktoken};
use edgepack_llm::tokenizer::{self, Kind, Tokenizer};

use crate::file::name_of;
use crate::formats::{self, Execution, pte};
use crate::options::{DataFiles, PackCache, Threads};
use crate::session::Session;
use crate::status::Failure;

#[cfg(feature = "schemas")]
pub(crate) use answer::Event;
pub use answer::{answer, end_of_turn};
#[cfg(feature = "schemas")]
pub(crate) use rates::Rates;
pub use rates::rates;
pub use sampling::{Sampling, TextArgs};
pub use saved::{read_saved, write_saved};

/// A language model.
#[derive(clap::Args, Debug)]
pub struct ModelArgs {
    /// The program of the model
    pub file: PathBuf,

    /// Data files of the program.
    #[command(flatten)]
    pub data: DataFiles,

    /// Number of threads.
    #[command(flatten)]
    pub threads: Threads,

    /// Folder of packed weights.
    #[command(flatten)]
    pub pack_cache: PackCache,

    /// Tokens there is to be room for; as many as the model has if not given
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<usize>,

    /// Name of the method that takes the prompt, if it has an unusual one
    #[arg(long, value_name = "NAME")]
    pub prefill_method: Option<String>,

    /// Name of the method that takes single tokens, if it is another one
    #[arg(long, value_name = "NAME")]
    pub decode_method: Option<String>,

    /// Name of the method that turns tokens into embeddings, if the others take embeddings
    #[arg(long, value_name = "NAME")]
    pub embedding_method: Option<String>,
}

impl ModelArgs {
    /// Opens the model.
    pub fn open(&self, session: &mut Session) -> Result<Model, Failure> {
        let _loading = session.progress.work("loading the model");
        let (file, format) = formats::open(&self.file, session)?;
        if format.kind() != FileKind::Program {
            return Err(formats::wrong_kind(&file, "a program"));
        }
        let how = Execution {
            data: &self.data.data,
            threads: self.threads.threads,
            pack_cache: self.pack_cache.folder.as_deref(),
            native: &crate::options::Native::default(),
            recorder: None,
        };
        let options = Options {
            executor: pte::options(how, session)?,
            prefill: self.prefill_method.clone(),
            decode: self.decode_method.clone(),
            embedding: self.embedding_method.clone(),
            context: self.context,
            ..Options::default()
        };
        let program = pte::open(file.source, &session.limits).map_err(|failure| failure.about(&file.name))?;
        let model = Model::load(&program, &edgepack_kernels::registry(), &options);
        model.map_err(|error| Failure::from(error).about(&file.name))
    }
}

/// A tokenizer.
#[derive(clap::Args, Debug)]
pub struct TokenizerArgs {
    /// Its tokenizer: `tokenizer.json`, tiktoken ranks, a SentencePiece model, or `tokenizer.bin` of llama2.c
    #[arg(short, long, value_name = "FILE")]
    pub tokenizer: PathBuf,

    /// Family of a file of tiktoken ranks, which does not name its special tokens
    #[arg(long, value_name = "FAMILY", default_value = "llama3")]
    pub ranks: Ranks,
}

/// Opens a chat template: a `tokenizer_config.json`, or the template itself.
pub fn open_template(path: &Path, session: &mut Session) -> Result<ChatTemplate, Failure> {
    let bytes = session.read_filled(path)?;
    ChatTemplate::from_bytes(&bytes).map_err(|error| Failure::from(error).about(&name_of(path)))
}

/// Family of a file of ranks: how it divides text, and its special tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Ranks {
    /// Llama 3
    Llama3,
    /// Qwen
    Qwen,
    /// GPT-2
    Gpt2,
    /// GPT-4
    Cl100k,
    /// GPT-4o
    O200k,
}

impl Ranks {
    fn options(self) -> tiktoken::Options {
        match self {
            Self::Llama3 => tiktoken::Options::llama3(),
            Self::Qwen => tiktoken::Options::qwen(),
            Self::Gpt2 => tiktoken::Options::gpt2(),
            Self::Cl100k => tiktoken::Options::cl100k(),
            Self::O200k => tiktoken::Options::o200k(),
        }
    }
}

impl TokenizerArgs {
    /// Opens the tokenizer.
    pub fn open(&self, session: &mut Session) -> Result<Box<dyn Tokenizer>, Failure> {
        let name = name_of(&self.tokenizer);
        let bytes = session.read_filled(&self.tokenizer)?;
        let opened = match Kind::of(&bytes) {
            Some(Kind::Tiktoken) => Tiktoken::from_bytes(&bytes, &self.ranks.options())
                .map(|tokenizer| Box::new(tokenizer) as Box<dyn Tokenizer>),
            _ => tokenizer::from_bytes(&bytes),
        };
        opened.map_err(|error| Failure::from(error).about(&name))
    }
}
