//! An application that generates text: one program, as many sessions as there are texts.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use edgepack_executor::delegate::Backends;
use edgepack_llm::generate::Cancel;
use edgepack_llm::model::{Model, Options};
use edgepack_llm::sampling::{Sampler, Settings};
use edgepack_llm::text::{self, Text, TextOptions};
use edgepack_llm::tokenizer::{self, ShowSpecial, SpecialTokens, Tokenizer};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A model and its tokenizer. Sessions are made of it on any thread.
pub struct Application {
    model: Model,
    tokenizer: Box<dyn Tokenizer>,
}

impl Application {
    /// Opens `story.pte` and `tokenizer.json` of a folder.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut options = Options::default();
        options.executor.backends = Backends::new().with(edgepack_xnnpack::Xnnpack);
        Ok(Application {
            model: Model::open(folder.join("story.pte"), &edgepack_kernels::registry(), &options)?,
            tokenizer: tokenizer::open(folder.join("tokenizer.json"))?,
        })
    }

    /// Tokens of what a user types, as text: `<|end|>` in it ends nothing.
    fn prompt(&self, text: &str) -> Result<Vec<u32>, Error> {
        Ok(text::prompt(&self.model, &*self.tokenizer, text, SpecialTokens::AsText)?)
    }

    fn sampler(&self, temperature: f32, seed: u64) -> Result<Sampler, Error> {
        let banned = text::without_token(&self.model, &*self.tokenizer);
        let settings = Settings { temperature, seed, banned, ..Settings::default() };
        Ok(Sampler::new(self.model.vocabulary(), settings)?)
    }

    /// Writes a text while it is made, until it ends by itself or the handle is used.
    pub fn stream(&self, prompt: &str, cancel: Cancel, out: &mut dyn Write) -> Result<Text, Error> {
        let mut session = self.model.session()?;
        let options = TextOptions { cancel: Some(cancel), ..TextOptions::of(&self.model, &*self.tokenizer) };
        let mut failed = None;
        let (mut sampler, prompt) = (self.sampler(0.0, 0)?, self.prompt(prompt)?);
        let made = text::generate(&mut session, &mut sampler, &*self.tokenizer, &prompt, &options, |piece| {
            // Flushed: a reader wants to see every piece at once.
            match out.write_all(piece.text.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(made),
        }
    }

    /// Generates on this thread while another one reads, and stops when that has read a whole sentence.
    pub fn one_sentence(&self, prompt: &str) -> Result<(String, Text), Error> {
        // Without a buffer: the model is at most one piece ahead of the reader.
        let (send, receive) = sync_channel(0);
        let cancel = Cancel::new();
        let handle = cancel.clone();
        let reader = thread::spawn(move || read_sentence(&receive, &handle));
        let made = self.stream(prompt, cancel, &mut Pieces(send));
        let read = reader.join().map_err(|_| "the reader panicked")?;
        Ok((read, made?))
    }

    /// Generates two texts in turn, a token of each: the sessions share the weights, and nothing else.
    pub fn in_turn(&self, prompts: [&str; 2], temperature: f32, tokens: usize) -> Result<[String; 2], Error> {
        let ends = TextOptions::of(&self.model, &*self.tokenizer).stop_tokens;
        let mut writers = Vec::new();
        for (seed, prompt) in prompts.into_iter().enumerate() {
            let mut session = self.model.session()?;
            session.prefill(&self.prompt(prompt)?)?;
            let decoder = self.tokenizer.decoder(ShowSpecial::Hidden);
            writers.push((session, self.sampler(temperature, seed as u64)?, decoder, String::new(), false));
        }
        for _ in 0..tokens {
            for (session, sampler, decoder, text, ended) in &mut writers {
                let Some(logits) = session.logits().filter(|_| !*ended) else { continue };
                let token = sampler.sample(logits, session.tokens())?;
                if ends.contains(&token) || session.room() == 0 {
                    *ended = true;
                    continue;
                }
                text.push_str(&decoder.push(token)?);
                session.decode(token)?;
            }
        }
        let mut texts = [String::new(), String::new()];
        for (have, (_, _, mut decoder, text, _)) in texts.iter_mut().zip(writers) {
            *have = text + &decoder.finish()?;
        }
        Ok(texts)
    }
}

/// Reads pieces up to the end of a sentence, then cancels; what still comes is taken and left.
fn read_sentence(pieces: &Receiver<String>, cancel: &Cancel) -> String {
    let mut read = String::new();
    for piece in pieces {
        if !cancel.is_cancelled() {
            read.push_str(&piece);
            if read.contains('.') {
                cancel.cancel();
            }
        }
    }
    read
}

/// Sends what is written to another thread.
struct Pieces(std::sync::mpsc::SyncSender<String>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.0.send(text).map_err(|_| std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
