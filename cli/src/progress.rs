//! Bars of work that takes longer than a second, on standard error where that is a terminal.
//!
//! Whoever works says what it does and, where it knows, how much there is; it never draws. One thread per work waits for
//! the second to pass, then draws until the work is dropped and its line is cleared. Work inside of work has no bar of its
//! own: a command has one at a time.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time after which work has a bar.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two drawings.
const TICK: Duration = Duration::from_millis(200);

/// Parts that work is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Anything that is counted: files, tokens, attempts.
    Pieces,
}

/// Decision whether work of a command has bars, and in colour.
#[derive(Clone)]
pub struct Progress {
    shown: bool,
    color: bool,
    /// True while a work has a bar, or waits for it.
    busy: Arc<AtomicBool>,
    delay: Duration,
}

impl Progress {
    /// Bars if `shown` says that standard error is a terminal that nothing else is written to meanwhile.
    pub fn new(shown: bool, color: bool) -> Self {
        Progress { shown, color, busy: Arc::default(), delay: DELAY }
    }

    /// Begins work of unknown extent: `loading`.
    pub fn work(&self, what: &str) -> Work {
        self.begin(what, None, Unit::Pieces)
    }

    /// Begins work of so many pieces or bytes.
    pub fn counted(&self, what: &str, total: u64, unit: Unit) -> Work {
        self.begin(what, Some(total), unit)
    }

    /// Begins work whose bytes are counted, and nobody knows how many there will be.
    pub fn bytes(&self, what: &str) -> Work {
        self.begin(what, None, Unit::Bytes)
    }

    fn begin(&self, what: &str, total: Option<u64>, unit: Unit) -> Work {
        if !self.shown || self.busy.swap(true, Ordering::AcqRel) {
            return Work(None);
        }
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template(total.is_some(), unit, self.color)) {
            bar.set_style(style.progress_chars("##-"));
        }
        bar.set_message(crate::spelling::name(what));
        let (end, ended) = mpsc::channel::<()>();
        let (drawn, delay) = (bar.clone(), self.delay);
        let drawing = Builder::new().name("progress".to_owned()).spawn(move || {
            if ended.recv_timeout(delay) == Err(RecvTimeoutError::Timeout) {
                drawn.set_draw_target(ProgressDrawTarget::stderr());
                drawn.tick();
                while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    drawn.tick();
                }
                drawn.finish_and_clear();
            }
        });
        // Without a thread there is no bar, and the work goes on.
        Work(Some(Drawn { bar, end: Some(end), drawing: drawing.ok(), busy: self.busy.clone() }))
    }
}

/// The line of a work.
fn template(known: bool, unit: Unit, color: bool) -> &'static str {
    match (known, unit, color) {
        (true, Unit::Bytes, true) => "{spinner} {msg:.bold} [{bar:24.green}] {bytes} of {total_bytes}, {eta} left",
        (true, Unit::Bytes, false) => "{spinner} {msg} [{bar:24}] {bytes} of {total_bytes}, {eta} left",
        (true, Unit::Pieces, true) => "{spinner} {msg:.bold} [{bar:24.green}] {pos} of {len}, {eta} left",
        (true, Unit::Pieces, false) => "{spinner} {msg} [{bar:24}] {pos} of {len}, {eta} left",
        (false, Unit::Bytes, true) => "{spinner} {msg:.bold} {bytes}, {elapsed}",
        (false, Unit::Bytes, false) => "{spinner} {msg} {bytes}, {elapsed}",
        (false, Unit::Pieces, true) => "{spinner} {msg:.bold} {elapsed}",
        (false, Unit::Pieces, false) => "{spinner} {msg} {elapsed}",
    }
}

/// Work that goes on until it is dropped.
pub struct Work(Option<Drawn>);

struct Drawn {
    bar: ProgressBar,
    end: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
    busy: Arc<AtomicBool>,
}

impl Work {
    /// Counts what was done.
    pub fn advance(&self, count: u64) {
        if let Some(drawn) = &self.0 {
            drawn.bar.inc(count);
        }
    }

    /// Returns a stream that counts the bytes that go into another.
    pub fn writer<'w>(&'w self, out: &'w mut (dyn Write + 'w)) -> Counted<'w> {
        Counted { work: self, out }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        drop(self.end.take());
        // A panic of the thread is told by itself, and takes no result with it.
        let _ = self.drawing.take().map(JoinHandle::join);
        self.busy.store(false, Ordering::Release);
    }
}

/// A stream whose bytes are counted.
pub struct Counted<'w> {
    work: &'w Work,
    out: &'w mut dyn Write,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.work.advance(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(work: &Work) -> Option<u64> {
        work.0.as_ref().map(|drawn| drawn.bar.position())
    }

    #[test]
    fn work_within_work_has_no_bar() {
        let progress = Progress { delay: Duration::from_secs(3600), ..Progress::new(true, false) };
        let outer = progress.counted("copying", 8, Unit::Bytes);
        assert_eq!(position(&progress.work("reading")), None);
        outer.writer(&mut Vec::new()).write_all(&[0; 5]).unwrap();
        assert_eq!(position(&outer), Some(5));
        drop(outer);
        assert_eq!(position(&progress.work("reading")), Some(0));
        assert_eq!(position(&Progress::new(false, true).work("reading")), None);
    }

    #[test]
    fn every_line_is_a_template() {
        for (known, unit, color) in [true, false].into_iter().flat_map(|known| {
            [Unit::Bytes, Unit::Pieces]
                .into_iter()
                .flat_map(move |unit| [true, false].map(|color| (known, unit, color)))
        }) {
            assert!(ProgressStyle::with_template(template(known, unit, color)).is_ok());
        }
    }
}
