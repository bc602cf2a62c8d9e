//! A language model in a program: its facts, the form of its steps, and what all sessions share.
//!
//! Invariant: a model that was opened is one whose steps this crate can run: metadata, inputs, outputs and state fit each
//! other. Everything else was refused by name.

mod caches;
mod form;
mod metadata;
mod probe;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use edgepack_executor::{Arena, Method, Registry};
use edgepack_loader::Program;
use sha2::{Digest, Sha256};

use crate::error::Error;

use caches::State;
pub use form::{EmbeddingForm, Length, Positions, Rank, Rows, StepForm};
pub use metadata::{MOST_CONTEXT, Metadata};

/// Room for tokens of a model of which neither metadata nor caches tell it.
pub const DEFAULT_CONTEXT: usize = 128;

/// Options of opening a model. The default finds methods by the names that exporters give them.
#[derive(Clone, Default)]
pub struct Options {
    /// Options of the executor: backends, data files, threads, limits. Sessions share packed weights through its cache.
    pub executor: edgepack_executor::Options,
    /// Method that takes the prompt. By default `forward`; without one, `prefill` next to `decode`; without these,
    /// `text_decoder` next to `token_embedding` (or `decoder` next to `token_embeddings`).
    pub prefill: Option<String>,
    /// Method that takes single tokens; that of the prompt by default.
    pub decode: Option<String>,
    /// Method that turns tokens into embeddings, if the others take embeddings.
    pub embedding: Option<String>,
    /// Ids of planned memories that the two methods share. Empty: those above 1 that both have at the same size, which is
    /// where exporters put shared mutable buffers.
    pub shared_memory: Vec<u32>,
    /// Room for tokens, if less than the model's is enough.
    pub context: Option<usize>,
}

/// An opened model. Clones are handles of the same one.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    program: Program,
    registry: Registry,
    options: Options,
    metadata: Metadata,
    /// Of the prompt, and of single tokens if that is another method.
    steps: Vec<StepForm>,
    embedding: Option<EmbeddingForm>,
    /// Planned memories that the steps share: id and bytes.
    shared: Vec<(u32, usize)>,
    cache: Cache,
    context: usize,
    /// Loaded to look at them, for the first session.
    spare: Mutex<Option<Methods>>,
    digest: OnceLock<[u8; 32]>,
}

/// Role of state in a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cache {
    /// Calls know nothing of each other; every call takes the whole text.
    Absent,
    /// Calls share keys and values, each at its position: a session goes back at no cost.
    ByPosition,
    /// Calls share state of another kind: a session that goes back runs what is left of its tokens again.
    Sequential,
}

/// Loaded methods of one session.
pub(crate) struct Methods {
    pub steps: Vec<Method>,
    pub embedding: Option<Method>,
}

impl Model {
    /// Opens the model of a file.
    ///
    /// # Errors
    ///
    /// As of [`Model::load`], and if the file cannot be read.
    pub fn open(path: impl AsRef<Path>, registry: &Registry, options: &Options) -> Result<Self, Error> {
        Model::load(&Program::open(path)?, registry, options)
    }

    /// Opens the model of a program. Metadata methods are run, the methods of the steps are loaded.
    ///
    /// # Errors
    ///
    /// A method is missing, cannot be loaded, or has a form that is no step of a language model; metadata contradict each
    /// other or the methods.
    pub fn load(program: &Program, registry: &Registry, options: &Options) -> Result<Self, Error> {
        let metadata = Metadata::read(program, registry, &options.executor)?;
        let names = Names::of(program, options)?;
        let mut steps = Vec::new();
        for name in names.steps() {
            steps.push(StepForm::of(&program.method_meta(name)?, names.embedding.is_some())?);
        }
        let embedding = match &names.embedding {
            Some(name) => Some(EmbeddingForm::of(&program.method_meta(name)?, &steps[0])?),
            None => None,
        };
        check_steps(&steps, embedding.as_ref())?;
        let shared = shared_memory(program, &steps, options)?;
        let mut inner = Inner {
            program: program.clone(),
            registry: registry.clone(),
            options: options.clone(),
            metadata,
            steps,
            embedding,
            shared,
            cache: Cache::Absent,
            context: 0,
            spare: Mutex::new(None),
            digest: OnceLock::new(),
        };
        let mut methods = inner.methods()?;
        inner.look_at_state(&methods)?;
        if inner.cache == Cache::Absent {
            for (form, method) in inner.steps.iter().zip(&mut methods.steps) {
                probe::check_padding(form, method)?;
            }
        }
        inner.spare = Mutex::new(Some(methods));
        Ok(Model { inner: Arc::new(inner) })
    }

    /// The program it was loaded from.
    pub fn program(&self) -> &Program {
        &self.inner.program
    }

    /// Facts that the program states about itself.
    pub fn metadata(&self) -> &Metadata {
        &self.inner.metadata
    }

    /// Form of the method that takes the prompt.
    pub fn prefill_form(&self) -> &StepForm {
        &self.inner.steps[0]
    }

    /// Form of the method that takes single tokens; often the same one.
    pub fn decode_form(&self) -> &StepForm {
        &self.inner.steps[self.inner.steps.len() - 1]
    }

    /// Form of the method that turns tokens into embeddings, if the steps take embeddings.
    pub fn embedding_form(&self) -> Option<&EmbeddingForm> {
        self.inner.embedding.as_ref()
    }

    /// Role of state between calls.
    pub fn cache(&self) -> Cache {
        self.inner.cache
    }

    /// Tokens that a session has room for: what the program states, or less if the inputs, the caches or the options
    /// allow less. [`DEFAULT_CONTEXT`] if nothing tells.
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// Tokens in the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.inner.steps[0].vocabulary
    }

    /// SHA-256 digest of the program and of the data files it was given. Computed when first asked for: it reads them whole.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], Error> {
        if let Some(digest) = self.inner.digest.get() {
            return Ok(*digest);
        }
        let digest = self.inner.compute_digest()?;
        Ok(*self.inner.digest.get_or_init(|| digest))
    }

    pub(crate) fn steps(&self) -> &[StepForm] {
        &self.inner.steps
    }

    /// Loaded methods for a session.
    pub(crate) fn methods(&self) -> Result<Methods, Error> {
        let spare = self.inner.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        spare.map_or_else(|| self.inner.methods(), Ok)
    }
}

impl Inner {
    fn methods(&self) -> Result<Methods, Error> {
        let mut options = self.options.executor.clone();
        for &(id, bytes) in &self.shared {
            let arena = Arena::new(bytes)
                .ok_or(Error::OutOfMemory { what: "memory that the steps share", bytes: bytes as u64 })?;
            options.arenas.push((id, arena));
        }
        let load = |name: &str, options| {
            Method::load(&self.program, name, &self.registry, options).map_err(|error| Error::load(name, error))
        };
        let steps = self.steps.iter().map(|form| load(&form.method, &options)).collect::<Result<_, _>>()?;
        let embedding = self.embedding.as_ref().map(|form| load(&form.method, &self.options.executor)).transpose()?;
        Ok(Methods { steps, embedding })
    }

    /// Finds out about state, and holds metadata against it and against the forms.
    fn look_at_state(&mut self, methods: &Methods) -> Result<(), Error> {
        let (mut room, mut ring) = (usize::MAX, usize::MAX);
        let mut cache = None;
        for (form, method) in self.steps.iter().zip(&methods.steps) {
            let found = match caches::state_of(method, &self.registry)? {
                State::Absent => Cache::Absent,
                State::ByPosition { room: own, ring: placed } => {
                    (room, ring) = (room.min(own), ring.min(placed));
                    Cache::ByPosition
                }
                State::Other => Cache::Sequential,
            };
            match (form.positions, found) {
                (Positions::Absent, Cache::ByPosition | Cache::Sequential) => {
                    return Err(Error::form(&form.method, "it has state between calls, but takes no position"));
                }
                (Positions::First | Positions::Each, Cache::Absent) => {
                    return Err(Error::form(&form.method, "it takes a position, but has no state between calls"));
                }
                _ => {}
            }
            // Of two methods the one that is less free decides.
            cache = Some(match cache {
                Some(Cache::Sequential) => Cache::Sequential,
                _ => found,
            });
        }
        if let Some(method) = &methods.embedding
            && caches::state_of(method, &self.registry)? != State::Absent
        {
            return Err(Error::form(method.name(), "it has state between calls"));
        }
        self.cache = cache.unwrap_or(Cache::Absent);
        self.check_metadata(room, ring)?;
        // Beyond its room a cache of computed places forgets what a session could go back to.
        if self.cache == Cache::ByPosition && ring < self.context {
            self.cache = Cache::Sequential;
        }
        Ok(())
    }

    fn check_metadata(&mut self, room: usize, ring: usize) -> Result<(), Error> {
        let metadata = &self.metadata;
        let (first, last) = (&self.steps[0], &self.steps[self.steps.len() - 1]);
        let vocabulary = first.vocabulary;
        if let Some(stated) = metadata.vocab_size.filter(|&stated| stated != vocabulary) {
            let message = format!("{stated}, `{}` returns logits of {vocabulary} tokens", first.method);
            return Err(Error::metadata("get_vocab_size", message));
        }
        metadata.check_tokens(vocabulary)?;
        if metadata.use_kv_cache.is_some_and(|stated| stated == (self.cache == Cache::Absent)) {
            let has = if self.cache == Cache::Absent { "no state" } else { "state" };
            let message = format!("{}, but `{}` has {has} between calls", self.cache == Cache::Absent, first.method);
            return Err(Error::metadata("use_kv_cache", message));
        }
        let longest = first.length.most().max(last.length.most());
        for (name, stated) in
            [("get_max_seq_len", metadata.max_seq_len), ("get_max_context_len", metadata.max_context_len)]
        {
            if let Some(stated) = stated.filter(|&stated| stated < longest) {
                return Err(Error::metadata(name, format!("{stated}, but a call takes up to {longest} tokens")));
            }
        }
        let stated = metadata.max_context_len.or(metadata.max_seq_len);
        if let Some(stated) = stated.filter(|&stated| stated > room) {
            let name = if metadata.max_context_len.is_some() { "get_max_context_len" } else { "get_max_seq_len" };
            return Err(Error::metadata(name, format!("{stated}, but the caches have room for {room} tokens")));
        }
        let most = if self.cache == Cache::Absent { longest } else { room };
        let own = match (stated, most) {
            (Some(stated), most) => stated.min(most),
            (None, most) if most.min(ring) == usize::MAX => DEFAULT_CONTEXT.max(longest),
            (None, most) => most.min(ring).min(MOST_CONTEXT),
        };
        self.context = match self.options.context {
            Some(0) => return Err(Error::metadata("get_max_context_len", "the options ask for room for no tokens")),
            Some(asked) => own.min(asked),
            None => own,
        };
        Ok(())
    }

    fn compute_digest(&self) -> Result<[u8; 32], Error> {
        const PIECE: u64 = 1 << 20;
        let mut hash = Sha256::new();
        let source = self.program.source();
        let len = source.len();
        hash.update(len.to_le_bytes());
        let mut piece = Vec::new();
        crate::error::reserve(&mut piece, PIECE.min(len) as usize, "a piece of the program")?;
        let mut at = 0;
        while at < len {
            piece.resize(PIECE.min(len - at) as usize, 0);
            source.read_at(at, &mut piece)?;
            hash.update(&piece);
            at += piece.len() as u64;
        }
        for map in &self.options.executor.data {
            hash.update((map.len() as u64).to_le_bytes());
            for key in (0..map.len()).filter_map(|index| map.key(index)) {
                hash.update((key.len() as u64).to_le_bytes());
                hash.update(key.as_bytes());
                if let Some(bytes) = map.data(key)? {
                    hash.update((bytes.len() as u64).to_le_bytes());
                    hash.update(&bytes[..]);
                }
            }
        }
        Ok(hash.finalize().into())
    }
}

/// Names of the methods of a model.
struct Names {
    prefill: String,
    decode: Option<String>,
    embedding: Option<String>,
}

impl Names {
    fn steps(&self) -> impl Iterator<Item = &str> {
        [&self.prefill].into_iter().chain(&self.decode).map(String::as_str)
    }

    fn of(program: &Program, options: &Options) -> Result<Self, Error> {
        let known = program.method_names()?;
        let has = |name: &str| known.iter().any(|known| known == name);
        let own = |name: &str| Some(name.to_owned());
        let mut names = match (&options.prefill, &options.decode) {
            (Some(prefill), decode) => Names { prefill: prefill.clone(), decode: decode.clone(), embedding: None },
            (None, Some(decode)) => Names { prefill: decode.clone(), decode: None, embedding: None },
            (None, None) if has("forward") => Names { prefill: "forward".to_owned(), decode: None, embedding: None },
            (None, None) if has("prefill") && has("decode") => {
                Names { prefill: "prefill".to_owned(), decode: own("decode"), embedding: None }
            }
            (None, None) => {
                let pairs = [("text_decoder", "token_embedding"), ("decoder", "token_embeddings")];
                let Some((step, embedding)) = pairs.into_iter().find(|(step, embedding)| has(step) && has(embedding))
                else {
                    let message = format!(
                        "there is none; nor `prefill` with `decode`, nor `text_decoder` with `token_embedding`: the program has {}",
                        known.join(", ")
                    );
                    return Err(Error::form("forward", message));
                };
                Names { prefill: step.to_owned(), decode: None, embedding: own(embedding) }
            }
        };
        if options.embedding.is_some() {
            names.embedding = options.embedding.clone();
        }
        names.decode = names.decode.filter(|decode| *decode != names.prefill);
        Ok(names)
    }
}

/// Refuses steps that do not fit each other, or that cannot take a single token.
fn check_steps(steps: &[StepForm], embedding: Option<&EmbeddingForm>) -> Result<(), Error> {
    let (first, last) = (&steps[0], &steps[steps.len() - 1]);
    if (first.vocabulary, first.rank, first.input) != (last.vocabulary, last.rank, last.input) {
        let message = format!("its inputs or its logits are not those of `{}`", first.method);
        return Err(Error::form(&last.method, message));
    }
    let has_cache = first.positions != Positions::Absent;
    if steps.len() > 1 && !(has_cache && last.positions != Positions::Absent) {
        return Err(Error::form(&last.method, "a method of its own for single tokens has to take a position"));
    }
    match (has_cache, last.length) {
        (true, Length::Exactly(count)) if count > 1 => {
            let message =
                format!("every call takes exactly {count} tokens; what would fill up the last one stays in the cache");
            Err(Error::form(&last.method, message))
        }
        (false, Length::Exactly(count)) if count > 1 && last.rows == Rows::Last => {
            let message =
                format!("every call takes exactly {count} tokens and returns the logits of the last one alone");
            Err(Error::form(&last.method, message))
        }
        (false, _) if embedding.is_some() => {
            Err(Error::form(&last.method, "it takes embeddings and no position: nothing could be added to a text"))
        }
        _ => match embedding.map(|form| (&form.method, form.length)) {
            Some((name, Length::Exactly(count))) if count > 1 => {
                Err(Error::form(name, format!("every call takes exactly {count} tokens, single ones are needed")))
            }
            _ => Ok(()),
        },
    }
}

/// Planned memories that two steps share, with their bytes.
fn shared_memory(program: &Program, steps: &[StepForm], options: &Options) -> Result<Vec<(u32, usize)>, Error> {
    let [first, last] = steps else { return Ok(Vec::new()) };
    let sizes = [program.method_meta(&first.method)?.planned_memory, program.method_meta(&last.method)?.planned_memory];
    let of = |id: u32| sizes.each_ref().map(|sizes| (id as usize).checked_sub(1).and_then(|at| sizes.get(at)).copied());
    let given = |id: u32| options.executor.arenas.iter().any(|(known, _)| *known == id);
    let mut shared = Vec::new();
    let ids = match options.shared_memory.as_slice() {
        [] => (2..=sizes[0].len() as u32).filter(|&id| of(id)[0] == of(id)[1] && of(id)[0] != Some(0)).collect(),
        ids => ids.to_vec(),
    };
    let most = options.executor.limits.unwrap_or(*program.limits()).arena_bytes;
    for id in ids.into_iter().filter(|&id| !given(id)) {
        let [Some(a), Some(b)] = of(id) else {
            return Err(Error::form(
                &last.method,
                format!("it or `{}` has no planned memory {id} to share", first.method),
            ));
        };
        let bytes = a.max(b);
        match usize::try_from(bytes) {
            Ok(len) if bytes <= most => shared.push((id, len)),
            _ => return Err(Error::OutOfMemory { what: "memory that the steps share", bytes }),
        }
    }
    if shared.is_empty() && options.executor.arenas.is_empty() {
        let message =
            format!("it shares no planned memory with `{}`, so it would not see what that leaves", first.method);
        return Err(Error::form(&last.method, message));
    }
    Ok(shared)
}
