//! Language models: text comes from a thread of its own, piece by piece.
//!
//! Invariant: that thread never asks for the interpreter's lock, so waiting for its end ends after one more token.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use edgepack::executor;
use edgepack::kernels;
use edgepack::loader::OpenOptions;
use edgepack_llm::chat::{ChatTemplate, Conversation, Message};
use edgepack_llm::error::Error as ModelError;
use edgepack_llm::generate::Cancel;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::sampling::{Sampler, Settings};
use edgepack_llm::session;
use edgepack_llm::text::{self, End, Text, TextOptions};
use edgepack_llm::tokenizer::{self, ShowSpecial, SpecialTokens, Tokenizer};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyString};

use crate::options::limits;
use crate::problem::{Problem, detached, shielded};
use crate::program::data_files;
use crate::source::Given;

/// A language model with its tokenizer.
#[pyclass(frozen, module = "edgepack.llm")]
#[derive(Clone)]
pub struct LanguageModel {
    model: Model,
    tokenizer: Arc<dyn Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
}

#[pymethods]
impl LanguageModel {
    /// Opens a program and its tokenizer, with a chat template if conversations are wanted.
    #[staticmethod]
    #[pyo3(signature = (program, tokenizer, *, template = None, data = None, threads = None, context = None, limits = None,
        mmap = false, pack_cache = None))]
    #[expect(clippy::too_many_arguments, reason = "they are options by name")]
    fn open(
        py: Python<'_>,
        program: &Bound<'_, PyAny>,
        tokenizer: &Bound<'_, PyAny>,
        template: Option<&Bound<'_, PyAny>>,
        data: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
        context: Option<usize>,
        limits: Option<&str>,
        mmap: bool,
        pack_cache: Option<PathBuf>,
    ) -> PyResult<LanguageModel> {
        shielded(|| {
            let limits = self::limits(limits)?;
            let source = Given::of(program)?.open(py, mmap)?;
            let tokenizer = Given::of(tokenizer)?.read(py, tokenizer::MOST_BYTES)?;
            let template = template.map(|template| Given::of(template)?.read(py, tokenizer::MOST_BYTES)).transpose()?;
            let mut options = executor::Options {
                backends: edgepack::backends(),
                data: data_files(py, data)?,
                threads,
                ..executor::Options::default()
            };
            detached(py, move || {
                let wrong = |what: &str, error: &dyn std::fmt::Display| {
                    Problem::new("TextError", format!("the {what}: {error}"))
                };
                let tokenizer = tokenizer::from_bytes(&tokenizer).map_err(|error| wrong("tokenizer", &error))?;
                let template = template.map(|bytes| ChatTemplate::from_bytes(&bytes)).transpose();
                let template = template.map_err(|error| wrong("chat template", &error))?;
                if let Some(folder) = pack_cache {
                    options = options.pack_cache(&folder).map_err(|error| Problem::new("AccessError", error))?;
                }
                let program = OpenOptions { limits }.open_source(source)?;
                let options = Options { executor: options, context, ..Options::default() };
                let model = Model::load(&program, &kernels::registry(), &options)?;
                Ok(LanguageModel { model, tokenizer: tokenizer.into(), template: template.map(Arc::new) })
            })
        })
    }

    /// Tokens that a session has room for.
    #[getter]
    fn context(&self) -> usize {
        self.model.context()
    }

    /// Tokens in the vocabulary.
    #[getter]
    fn vocabulary(&self) -> usize {
        self.model.vocabulary()
    }

    /// The tokens of a text, with the one in front that texts begin with. Special tokens in it are text unless `special`.
    #[pyo3(signature = (text, *, special = false))]
    fn encode(&self, text: &str, special: bool) -> PyResult<Vec<u32>> {
        shielded(|| {
            let special = if special { SpecialTokens::Recognised } else { SpecialTokens::AsText };
            let ids = text::prompt(&self.model, &*self.tokenizer, text, special);
            Ok(ids.map_err(|error| Problem::new("TextError", error))?)
        })
    }

    /// The text of tokens; special ones leave none unless `special`.
    #[pyo3(signature = (tokens, *, special = false))]
    fn decode(&self, tokens: Vec<u32>, special: bool) -> PyResult<String> {
        shielded(|| {
            let special = if special { ShowSpecial::Shown } else { ShowSpecial::Hidden };
            Ok(self.tokenizer.decode(&tokens, special).map_err(|error| Problem::new("TextError", error))?)
        })
    }

    /// A text over the model, with state of its own; weights are shared.
    fn session(&self, py: Python<'_>) -> PyResult<Session> {
        shielded(|| {
            let model = self.clone();
            let session = detached(py, || Ok(model.model.session()?))?;
            Ok(Session { model, session: Arc::new(Mutex::new(session)) })
        })
    }
}

impl LanguageModel {
    /// The tokens of a prompt: a text, or the messages of a conversation as JSON.
    fn prompt(&self, prompt: Prompt) -> Result<Vec<u32>, Problem> {
        let wrong = |error: &dyn std::fmt::Display| Problem::new("TextError", error);
        match prompt {
            Prompt::Text(prompt) => {
                let ids = text::prompt(&self.model, &*self.tokenizer, &prompt, SpecialTokens::AsText);
                ids.map_err(|error| wrong(&error))
            }
            Prompt::Messages(messages) => {
                let without = || Problem::new("UsageError", "messages need a chat template: open the model with one");
                let template = self.template.as_ref().ok_or_else(without)?;
                let messages = messages.iter().map(|json| Message::from_json(json)).collect::<Result<Vec<_>, _>>();
                let messages = messages.map_err(|error| wrong(&error))?;
                let conversation = Conversation::new(messages).add_generation_prompt(true);
                template.encode(&conversation, &*self.tokenizer).map_err(|error| wrong(&error))
            }
        }
    }
}

enum Prompt {
    Text(String),
    Messages(Vec<String>),
}

impl Prompt {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Prompt> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Prompt::Text(text.extract()?));
        }
        let json = object.py().import("json")?;
        let dump = |message: PyResult<Bound<'_, PyAny>>| json.call_method1("dumps", (message?,))?.extract();
        Ok(Prompt::Messages(object.try_iter()?.map(dump).collect::<PyResult<_>>()?))
    }
}

/// A text over a model. One generation at a time uses it.
#[pyclass(frozen, module = "edgepack.llm")]
pub struct Session {
    model: LanguageModel,
    session: Arc<Mutex<session::Session>>,
}

fn busy() -> Problem {
    Problem::new("TextError", "the session is generating: read that text to its end, or close it")
}

#[pymethods]
impl Session {
    /// The tokens in it.
    #[getter]
    fn tokens(&self) -> PyResult<Vec<u32>> {
        let session = self.session.try_lock().map_err(|_| busy())?;
        Ok(session.tokens().to_vec())
    }

    /// Forgets all tokens.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || Ok(self.session.try_lock().map_err(|_| busy())?.reset()?))
    }

    /// Starts to generate the text behind a prompt, which is the whole text so far: what of it the session has already is not
    /// computed again. A prompt of messages is put into the chat template.
    #[pyo3(signature = (prompt, *, max_new_tokens = None, stop = Vec::new(), temperature = 0.0, top_k = 0, top_p = 1.0,
        min_p = 0.0, repetition_penalty = 1.0, seed = 0, ignore_end = false, show_special = false))]
    #[expect(clippy::too_many_arguments, reason = "they are options by name")]
    fn stream(
        &self,
        prompt: &Bound<'_, PyAny>,
        max_new_tokens: Option<usize>,
        stop: Vec<String>,
        temperature: f32,
        top_k: usize,
        top_p: f32,
        min_p: f32,
        repetition_penalty: f32,
        seed: u64,
        ignore_end: bool,
        show_special: bool,
    ) -> PyResult<Generation> {
        shielded(|| {
            let prompt = Prompt::of(prompt)?;
            let (model, tokenizer) = (&self.model.model, &*self.model.tokenizer);
            let mut options = TextOptions::of(model, tokenizer);
            if let (Prompt::Messages(_), Some(template)) = (&prompt, &self.model.template) {
                // A turn ends with the token that the template puts behind it, whatever ends a text.
                let end = template.token("eos_token").and_then(|token| tokenizer.id(token.as_bytes()));
                options.stop_tokens.extend(end);
            }
            if ignore_end {
                options.stop_tokens.clear();
            }
            options.max_new_tokens = max_new_tokens;
            options.stop_strings = stop;
            options.special = if show_special { ShowSpecial::Shown } else { ShowSpecial::Hidden };
            let cancel = Cancel::new();
            options.cancel = Some(cancel.clone());
            let settings = Settings {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty,
                banned: text::without_token(model, tokenizer),
                seed,
                ..Settings::default()
            };
            let sampler = Sampler::new(model.vocabulary(), settings);
            let sampler = sampler.map_err(|error| Problem::new("UsageError", error))?;
            let (sender, receiver) = channel();
            let work = Work { model: self.model.clone(), session: self.session.clone(), sampler, options, prompt };
            let thread = std::thread::Builder::new().name("edgepack text".to_owned());
            let thread = thread.spawn(move || work.run(&sender)).map_err(|error| Problem::io("a thread", &error))?;
            let state = State { receiver, thread: Some(thread), made: None };
            Ok(Generation { cancel, state: Mutex::new(state) })
        })
    }
}

/// One generation.
struct Work {
    model: LanguageModel,
    session: Arc<Mutex<session::Session>>,
    sampler: Sampler,
    options: TextOptions,
    prompt: Prompt,
}

enum Event {
    Piece(String),
    End(Box<Result<Text, Problem>>),
}

impl Work {
    fn run(self, sender: &Sender<Event>) {
        let made = shielded(|| self.text(sender));
        // Nobody may be left to be told.
        let _ = sender.send(Event::End(Box::new(made)));
    }

    fn text(mut self, sender: &Sender<Event>) -> Result<Text, Problem> {
        let mut session = self.session.try_lock().map_err(|_| busy())?;
        let ids = self.model.prompt(self.prompt)?;
        let common = text::rewind_to_common(&mut session, &ids)?;
        let tell = |piece: text::Piece<'_>| match piece.text.is_empty()
            || sender.send(Event::Piece(piece.text.into())).is_ok()
        {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let tokenizer = &*self.model.tokenizer;
        text::generate(&mut session, &mut self.sampler, tokenizer, &ids[common..], &self.options, tell).map_err(
            |error| match error {
                text::Error::Model(error) => error.into(),
                error => Problem::new("TextError", error),
            },
        )
    }
}

/// Text that is being generated: an iterator over its pieces.
#[pyclass(frozen, module = "edgepack.llm")]
pub struct Generation {
    cancel: Cancel,
    state: Mutex<State>,
}

struct State {
    receiver: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
    made: Option<Text>,
}

impl State {
    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic in it was told as its end.
            let _ = thread.join();
        }
    }
}

/// Time after which a waiting thread looks for signals, such as that of Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

impl Generation {
    /// Waits for the next piece; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let failed = |_| Problem::new("InternalError", "the text failed before");
        let mut state = self.state.lock_py_attached(py).map_err(failed)?;
        loop {
            if state.made.is_some() {
                return Ok(None);
            }
            // After `close` the pieces that were made, and the end, are still to be read.
            let receiver = &mut state.receiver;
            match py.detach(move || receiver.recv_timeout(PATIENCE)) {
                Ok(Event::Piece(piece)) => return Ok(Some(piece)),
                Ok(Event::End(made)) => {
                    state.join();
                    state.made = Some((*made)?);
                    return Ok(None);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    state.join();
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = py.check_signals() {
                        self.cancel.cancel();
                        return Err(interrupt);
                    }
                }
            }
        }
    }
}

#[pymethods]
impl Generation {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        shielded(|| self.next(py))
    }

    /// Reads the text to its end: all of it, and why it ended.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        shielded(|| {
            while self.next(py)?.is_some() {}
            let failed = |_| Problem::new("InternalError", "the text failed before");
            let state = self.state.lock_py_attached(py).map_err(failed)?;
            let Some(made) = &state.made else { return Ok(None) };
            let facts = PyDict::new(py);
            let (end, stop) = match &made.end {
                End::StopToken(token) => ("stop_token", Some(token.to_string())),
                End::StopString(text) => ("stop_string", Some(text.clone())),
                End::MaxNewTokens => ("max_new_tokens", None),
                End::ContextFull => ("context_full", None),
                End::Cancelled | End::Callback => ("closed", None),
                _ => ("other", None),
            };
            facts.set_item("text", &made.text)?;
            facts.set_item("end", end)?;
            facts.set_item("stop", stop)?;
            facts.set_item("prompt_tokens", made.statistics.prompt_tokens)?;
            facts.set_item("new_tokens", made.statistics.new_tokens)?;
            facts.set_item("prefill_seconds", made.statistics.prefill.as_secs_f64())?;
            facts.set_item("decode_seconds", made.statistics.decode.as_secs_f64())?;
            Ok(Some(facts))
        })
    }

    /// Ends the text after the token that is being computed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.cancel.cancel();
        if let Ok(mut state) = self.state.lock_py_attached(py) {
            let state = &mut *state;
            py.detach(|| state.join());
        }
        Ok(())
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Ok(state) = self.state.get_mut() {
            state.join();
        }
    }
}

impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Problem {
        match error {
            ModelError::Program(error) => error.into(),
            ModelError::Load { error, .. } => (*error).into(),
            ModelError::Run { error, .. } => (*error).into(),
            error => Problem::new("TextError", error),
        }
    }
}
