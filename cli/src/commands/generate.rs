//! `edgepack generate`: a prompt goes in, text comes out as it becomes certain.

use std::path::{Path, PathBuf};

use edgepack_llm::chat::{Conversation, Message};
use edgepack_llm::text;
use edgepack_llm::tokenizer::SpecialTokens;

use crate::file::name_of;
use crate::llm::{ModelArgs, Sampling, TextArgs, TokenizerArgs, answer, end_of_turn, open_template};
use crate::session::Session;
use crate::status::{Failure, Status};

/// Generate text with a language model
///
/// The text goes to standard output as it becomes certain, counts and times to standard error. With `--json`, a line of
/// JSON per event.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Its tokenizer.
    #[command(flatten)]
    pub tokenizer: TokenizerArgs,

    /// The prompt; `-` reads it from standard input
    #[arg(required_unless_present = "prompt_file")]
    pub prompt: Option<String>,

    /// A file with the prompt
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub prompt_file: Option<PathBuf>,

    /// Take the prompt for a user's message and put it into this chat template: a `tokenizer_config.json`, or a `.jinja` file
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,

    /// Message of the system in front of the user's, with `--template`
    #[arg(long, value_name = "TEXT", requires = "template")]
    pub system: Option<String>,

    /// Recognise special tokens in the prompt, which are text otherwise
    #[arg(long)]
    pub special: bool,

    /// Put no token in front that the tokenizer says texts begin with
    #[arg(long, conflicts_with = "template")]
    pub no_begin: bool,

    /// Choice of tokens.
    #[command(flatten)]
    pub sampling: Sampling,

    /// End of the text.
    #[command(flatten)]
    pub text: TextArgs,
}

/// Runs the command.
pub fn run(args: &Args, session: &mut Session) -> Result<Status, Failure> {
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(prompt), _) if prompt != "-" => None,
        (_, Some(file)) => Some(file.as_path()),
        _ => Some(Path::new("-")),
    };
    let inputs = [&*args.model.file, &args.tokenizer.tokenizer].into_iter().chain(args.template.as_deref());
    session.reads_stdin_once(inputs.chain(prompt))?;
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(prompt), _) if prompt != "-" => prompt.clone(),
        (_, Some(file)) => read_text(file, session)?,
        _ => read_text(Path::new("-"), session)?,
    };
    let tokenizer = args.tokenizer.open(session)?;
    let template = args.template.as_deref().map(|file| open_template(file, session)).transpose()?;
    let model = args.model.open(session)?;
    let mut options = args.text.options(&model, &*tokenizer);
    let ids = match &template {
        Some(template) => {
            options.stop_tokens.extend(end_of_turn(template, &*tokenizer));
            let system = args.system.as_ref().map(|text| Message::new("system", text));
            let messages = system.into_iter().chain([Message::new("user", &prompt)]).collect::<Result<Vec<_>, _>>()?;
            template.encode(&Conversation::new(messages).add_generation_prompt(true), &*tokenizer)?
        }
        None => {
            let special = if args.special { SpecialTokens::Recognised } else { SpecialTokens::AsText };
            match args.no_begin {
                true => tokenizer.encode(&prompt, special)?,
                false => text::prompt(&model, &*tokenizer, &prompt, special)?,
            }
        }
    };
    let mut sampler = args.sampling.sampler(&model, &*tokenizer)?;
    let mut llm = model.session()?;
    answer(&mut llm, &mut sampler, &*tokenizer, &ids, &options, args.text.quiet, session)?;
    Ok(Status::Fine)
}

fn read_text(file: &Path, session: &mut Session) -> Result<String, Failure> {
    let text = String::from_utf8(session.read(file)?);
    text.map_err(|_| Failure::unreadable(format!("{}: this is not text", name_of(file))))
}
