//! `edgepack chat`: a conversation with a language model, turn by turn.

use std::io::Write;
use std::path::{Path, PathBuf};

use edgepack_llm::chat::{Conversation, Message};
use edgepack_llm::text;

use crate::file::name_of;
use crate::llm::{
    ModelArgs, Sampling, TextArgs, TokenizerArgs, answer, end_of_turn, open_template, read_saved, write_saved,
};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Talk with a language model
///
/// Every line of standard input is a message. `/reset` begins anew, `/save FILE` saves the conversation with what the
/// model has computed of it, `/quit` or the end of the input ends the command.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Its tokenizer.
    #[command(flatten)]
    pub tokenizer: TokenizerArgs,

    /// The chat template: a `tokenizer_config.json`, or a `.jinja` file
    #[arg(long, value_name = "FILE")]
    pub template: PathBuf,

    /// Message of the system at the beginning
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// Go on with a conversation that `/save` saved
    #[arg(long, value_name = "FILE", conflicts_with = "system")]
    pub resume: Option<PathBuf>,

    /// Choice of tokens.
    #[command(flatten)]
    pub sampling: Sampling,

    /// End of each answer.
    #[command(flatten)]
    pub text: TextArgs,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    // Questions come from standard input.
    let inputs = [Path::new("-"), &args.model.file, &args.tokenizer.tokenizer, &args.template];
    session.reads_stdin_once(inputs.into_iter().chain(args.resume.as_deref()))?;
    let tokenizer = args.tokenizer.open(session)?;
    let template = open_template(&args.template, session)?;
    let model = args.model.open(session)?;
    let mut options = args.text.options(&model, &*tokenizer);
    options.stop_tokens.extend(end_of_turn(&template, &*tokenizer));
    let mut sampler = args.sampling.sampler(&model, &*tokenizer)?;
    let mut llm = model.session()?;
    let beginning: Vec<(String, String)> = args.system.iter().map(|text| ("system".to_owned(), text.clone())).collect();
    let mut messages = match &args.resume {
        Some(file) => {
            let bytes = session.read_filled(file)?;
            read_saved(&bytes, &mut llm).map_err(|failure| failure.about(&name_of(file)))?
        }
        None => beginning.clone(),
    };
    loop {
        if !session.json {
            write!(session.err, "> ")?;
            session.err.flush()?;
        }
        let Some(line) = session.read_line()? else { break };
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("", "") => continue,
            ("/quit", "") => break,
            ("/reset", "") => {
                messages = beginning.clone();
                llm.reset()?;
                sampler.reset();
                continue;
            }
            ("/save", file) if !file.is_empty() => {
                // A conversation does not end because it cannot be saved there.
                let saved = session.write_stream(&PathBuf::from(file), |out| write_saved(&messages, &mut llm, out));
                match saved {
                    Ok(()) => writeln!(session.err, "saved to {file}")?,
                    Err(failure) => writeln!(session.err, "{}", failure.message)?,
                }
                continue;
            }
            (command, _) if command.starts_with('/') => {
                writeln!(session.err, "there are /reset, /save FILE and /quit")?;
                continue;
            }
            _ => messages.push(("user".to_owned(), line)),
        }
        let said = messages.iter().map(|(role, content)| Message::new(role, content)).collect::<Result<Vec<_>, _>>()?;
        let ids = template.encode(&Conversation::new(said).add_generation_prompt(true), &*tokenizer)?;
        let common = text::rewind_to_common(&mut llm, &ids)?;
        let made = answer(&mut llm, &mut sampler, &*tokenizer, &ids[common..], &options, args.text.quiet, session)?;
        messages.push(("assistant".to_owned(), made.text));
    }
    Ok(Status::Fine)
}
