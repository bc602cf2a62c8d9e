//! One text in the making: tokens go in, logits of the next one come out.
//!
//! Invariant: the state of the methods is that of the tokens up to [`Session::position`]. A run that fails or panics
//! leaves the position where it was; state that is not addressed by position is then computed again before the next run.

mod saved;
mod step;

use edgepack_executor::MemoryBytes;

use crate::error::{Error, reserve};
use crate::model::{Cache, Length, Model, Rank};
use step::{Embedder, Step};

/// Stands in [`Session::tokens`] for a row of embeddings that the caller gave.
pub const NO_TOKEN: u32 = u32::MAX;

/// One text over a model, with memory of its own for state; weights are shared with the other sessions of the model.
pub struct Session {
    model: Model,
    steps: Vec<Step>,
    embedding: Option<Embedder>,
    tokens: Vec<u32>,
    logits: Vec<f32>,
    /// The logits are those after the last token.
    has_logits: bool,
    /// State may be that of other tokens: it has to be computed again.
    unsettled: bool,
}

impl Model {
    /// A new session, without tokens. It makes all allocations that its runs need.
    ///
    /// # Errors
    ///
    /// The methods cannot be loaded, or there is no memory.
    pub fn session(&self) -> Result<Session, Error> {
        let methods = self.methods()?;
        let (context, vocabulary) = (self.context(), self.vocabulary());
        let mut steps = Vec::new();
        for (form, method) in self.steps().iter().zip(methods.steps) {
            steps.push(Step::new(form.clone(), method)?);
        }
        let embedding = match (self.embedding_form(), methods.embedding) {
            (Some(form), Some(method)) => Some(Embedder::new(form.clone(), method)?),
            _ => None,
        };
        let (mut tokens, mut logits) = (Vec::new(), Vec::new());
        reserve(&mut tokens, context, "the tokens of a session")?;
        reserve(&mut logits, vocabulary, "logits")?;
        logits.resize(vocabulary, 0.0);
        Ok(Session { model: self.clone(), steps, embedding, tokens, logits, has_logits: false, unsettled: false })
    }
}

impl Session {
    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of tokens in the session.
    pub fn position(&self) -> usize {
        self.tokens.len()
    }

    /// The tokens in the session; [`NO_TOKEN`] for each row of embeddings that the caller gave.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Room for further tokens.
    pub fn room(&self) -> usize {
        self.model.context() - self.tokens.len()
    }

    /// The most tokens that one call of the model takes: prompts are cut into pieces of at most this many.
    pub fn chunk(&self) -> usize {
        self.steps[0].form.length.most().min(self.model.context())
    }

    /// Logits of the token after the last, one per token of the vocabulary. `None` in front of the first token, and after
    /// going back.
    pub fn logits(&self) -> Option<&[f32]> {
        self.has_logits.then_some(self.logits.as_slice())
    }

    /// Adds tokens, in as few calls of the model as it allows, and returns the logits of the token after them.
    ///
    /// # Errors
    ///
    /// No tokens, one outside of the vocabulary, more than there is room for: nothing has changed. If a run fails, the
    /// tokens of the runs before it are in the session.
    pub fn prefill(&mut self, tokens: &[u32]) -> Result<&[f32], Error> {
        if tokens.is_empty() {
            return Err(Error::Empty);
        }
        self.check(tokens)?;
        self.settle()?;
        self.add(tokens)?;
        Ok(&self.logits)
    }

    /// Fails as [`Session::prefill`] would if one of these tokens is outside of the vocabulary, or there is no room for all.
    pub fn check(&self, tokens: &[u32]) -> Result<(), Error> {
        self.check_room(tokens.len())?;
        let vocabulary = self.logits.len();
        match tokens.iter().find(|&&token| token as usize >= vocabulary) {
            Some(&token) => Err(Error::Token { token, vocabulary }),
            None => Ok(()),
        }
    }

    /// Adds one token, and returns the logits of the next. Once a few tokens were decoded this allocates nothing, unless a
    /// kernel does.
    ///
    /// # Errors
    ///
    /// As of [`Session::prefill`].
    pub fn decode(&mut self, token: u32) -> Result<&[f32], Error> {
        self.prefill(&[token])
    }

    /// Adds rows of embeddings, such as the features of an image that an encoder computed: a multiple of the model's width
    /// of numbers. Only models whose steps take embeddings have it.
    ///
    /// # Errors
    ///
    /// As of [`Session::prefill`]; the model takes tokens, or the numbers are not whole rows or not finite.
    pub fn prefill_embeddings(&mut self, rows: &[f32]) -> Result<&[f32], Error> {
        let Rank::Embeddings { width } = self.steps[0].form.rank else {
            return Err(Error::Embeddings(format!("`{}` takes tokens", self.steps[0].form.method)));
        };
        if !rows.len().is_multiple_of(width) {
            return Err(Error::Embeddings(format!("{} numbers are no rows of {width}", rows.len())));
        }
        // What is not finite would stay in caches, and reach logits through attention even where its weight is zero.
        if let Some(at) = rows.iter().position(|x| !x.is_finite()) {
            return Err(Error::Embeddings(format!("row {} has the number {}", at / width, rows[at])));
        }
        if rows.is_empty() {
            return Err(Error::Empty);
        }
        self.check_room(rows.len() / width)?;
        self.settle()?;
        self.has_logits = false;
        self.unsettled |= self.model.cache() == Cache::Sequential;
        let mut rows = rows;
        while !rows.is_empty() {
            let (index, count) = self.plan(rows.len() / width, usize::MAX)?;
            let (now, later) = rows.split_at(count * width);
            self.steps[index].write_rows(now);
            self.steps[index].run(self.tokens.len(), count, &mut self.logits)?;
            self.tokens.resize(self.tokens.len() + count, NO_TOKEN);
            rows = later;
        }
        self.has_logits = true;
        self.unsettled = false;
        Ok(&self.logits)
    }

    /// Goes back to an earlier position: what was added after it is gone. Costs nothing if state is addressed by position
    /// ([`Model::cache`]); otherwise the tokens that stay are run again.
    ///
    /// # Errors
    ///
    /// The position is beyond the session's, nothing has changed. Or the tokens cannot be run again.
    pub fn rewind(&mut self, to: usize) -> Result<(), Error> {
        if to > self.tokens.len() {
            let message = format!("the session has {} tokens", self.tokens.len());
            return Err(Error::Rewind { to, message });
        }
        if to == self.tokens.len() {
            return self.settle();
        }
        let again = self.model.cache() == Cache::Sequential;
        if again && self.tokens[..to].contains(&NO_TOKEN) {
            let message = "state is not by position, and embeddings before it cannot be run again".to_owned();
            return Err(Error::Rewind { to, message });
        }
        self.tokens.truncate(to);
        self.has_logits = false;
        self.unsettled |= again;
        self.settle()
    }

    /// Goes back to no tokens at all, with all memory as after loading.
    ///
    /// # Errors
    ///
    /// Initial values cannot be read again.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.unsettled = true;
        self.tokens.clear();
        self.has_logits = false;
        self.settle()
    }

    /// Memory of the loaded methods, by name. Weights that other sessions have too are counted in each.
    pub fn memory_bytes(&self) -> impl Iterator<Item = (&str, MemoryBytes)> {
        let steps = self.steps.iter().map(|step| (step.form.method.as_str(), step.method.memory_bytes()));
        steps.chain(self.embedding.iter().map(|step| (step.form.method.as_str(), step.method.memory_bytes())))
    }

    fn check_room(&self, more: usize) -> Result<(), Error> {
        if more <= self.room() {
            return Ok(());
        }
        Err(Error::ContextFull { position: self.tokens.len(), more, limit: self.model.context() })
    }

    /// Computes state again if it may be that of other tokens.
    fn settle(&mut self) -> Result<(), Error> {
        if !self.unsettled {
            return Ok(());
        }
        if self.tokens.contains(&NO_TOKEN) {
            let message = "a run failed, and embeddings before it cannot be run again; reset the session".to_owned();
            return Err(Error::Rewind { to: self.tokens.len(), message });
        }
        for step in &mut self.steps {
            step.reset()?;
        }
        let tokens = self.tokens.clone();
        let had_logits = std::mem::replace(&mut self.has_logits, false);
        self.feed(0, &tokens)?;
        self.has_logits = had_logits;
        self.unsettled = false;
        Ok(())
    }

    /// Adds tokens that fit and were checked.
    fn add(&mut self, tokens: &[u32]) -> Result<(), Error> {
        self.has_logits = false;
        self.unsettled |= self.model.cache() == Cache::Sequential;
        let before = self.tokens.len();
        self.feed(before, tokens)?;
        self.has_logits = true;
        self.unsettled = false;
        Ok(())
    }

    /// Runs tokens from position `at` on, chunk by chunk. Those beyond the end of the session become part of it.
    fn feed(&mut self, at: usize, tokens: &[u32]) -> Result<(), Error> {
        if self.model.cache() == Cache::Absent {
            return self.feed_whole(at, tokens);
        }
        let (mut at, mut rest) = (at, tokens);
        while !rest.is_empty() {
            let most = self.embedding.as_ref().map_or(usize::MAX, |embedding| embedding.form.length.most());
            let (index, count) = self.plan(rest.len(), most)?;
            let (now, later) = rest.split_at(count);
            match &mut self.embedding {
                Some(embedding) => embedding.write(now, &mut self.steps[index])?,
                None => self.steps[index].write_tokens(now.iter()),
            }
            self.steps[index].run(at, count, &mut self.logits)?;
            if at == self.tokens.len() {
                self.tokens.extend_from_slice(now);
            }
            (at, rest) = (at + count, later);
        }
        Ok(())
    }

    /// Runs the whole text up to `at` again, with these tokens behind it.
    fn feed_whole(&mut self, at: usize, tokens: &[u32]) -> Result<(), Error> {
        let count = at + tokens.len();
        if count == 0 {
            return Ok(());
        }
        self.steps[0].write_tokens(self.tokens[..at].iter().chain(tokens));
        self.steps[0].run(0, count, &mut self.logits)?;
        if at == self.tokens.len() {
            self.tokens.extend_from_slice(tokens);
        }
        Ok(())
    }

    /// Chooses a step for the remaining tokens, and the number it takes.
    fn plan(&self, remaining: usize, most: usize) -> Result<(usize, usize), Error> {
        let takes = |step: &Step| match step.form.length {
            Length::Exactly(count) if count > most => None,
            length => length.of(remaining.min(most)),
        };
        // The method for single tokens takes what the one for prompts does no better.
        let steps = self.steps.iter().enumerate().rev();
        let plans = steps.filter_map(|(index, step)| takes(step).map(|count| (index, count)));
        let best = plans.fold(None, |best: Option<(usize, usize)>, plan| match best {
            Some(best) if best.1 >= plan.1 => Some(best),
            _ => Some(plan),
        });
        best.ok_or_else(|| Error::form(&self.steps[0].form.method, format!("no call takes {remaining} tokens")))
    }
}
