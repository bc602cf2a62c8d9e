//! A server on this machine that answers as a test wants it to, and counts what it sends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Method, path and version.
    pub line: String,
    headers: Vec<(String, String)>,
}

impl Question {
    /// The value of a header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path with the query.
    pub fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    /// The range asked for.
    pub fn range(&self) -> Range<u64> {
        let text = self.header("range").expect("every question is for a range");
        let (first, last) = text.strip_prefix("bytes=").and_then(|text| text.split_once('-')).expect("a range");
        first.parse().unwrap()..last.parse::<u64>().unwrap() + 1
    }
}

/// The way an answer is written.
pub type Answer = dyn Fn(&Question, &mut dyn Write) -> io::Result<()> + Send + Sync;

/// A server; it ends with its value.
pub struct Server {
    scheme: &'static str,
    port: u16,
    sent: Arc<AtomicU64>,
    asked: Arc<Mutex<Vec<Question>>>,
    over: Arc<AtomicBool>,
}

impl Server {
    /// A server that answers so.
    pub fn new(answer: impl Fn(&Question, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static) -> Server {
        Server::start("http", |stream| Ok(Box::new(stream)), answer)
    }

    /// A server of one file, under every path, that speaks as it is told to.
    pub fn wrapped(
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + Sync + 'static,
        file: File,
    ) -> Server {
        Server::start("https", wrap, move |question, out| file.answer(question, out))
    }

    fn start(
        scheme: &'static str,
        wrap: impl Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + Sync + 'static,
        answer: impl Fn(&Question, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().unwrap().port();
        let server = Server { scheme, port, sent: Arc::default(), asked: Arc::default(), over: Arc::default() };
        let (sent, asked, over) = (server.sent.clone(), server.asked.clone(), server.over.clone());
        let (answer, wrap): (Arc<Answer>, _) = (Arc::new(answer), Arc::new(wrap));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let (sent, asked, answer, wrap) = (sent.clone(), asked.clone(), answer.clone(), wrap.clone());
                // A client that goes away is no concern of the server.
                thread::spawn(move || drop(wrap(stream).and_then(|stream| talk(stream, &sent, &asked, &*answer))));
            }
        });
        server
    }

    /// A server of one file, under every path.
    pub fn of(file: File) -> Server {
        Server::new(move |question, out| file.answer(question, out))
    }

    /// URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}/{path}", self.scheme, self.host())
    }

    /// Host and port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Bytes sent so far, heads included.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Questions so far.
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Both directions of a connection.
pub trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

struct Counted<'a>(&'a mut dyn Stream, &'a AtomicU64);

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.0.write(bytes)?;
        self.1.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn talk(stream: Box<dyn Stream>, sent: &AtomicU64, asked: &Mutex<Vec<Question>>, answer: &Answer) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let line = lines.remove(0);
        let pair = |line: &String| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let question = Question { line, headers: lines.iter().map(pair).collect() };
        asked.lock().unwrap().push(question.clone());
        let mut out = Counted(reader.get_mut(), sent);
        answer(&question, &mut out)?;
        out.flush()?;
    }
}

/// A file of any length, which is made up as it is read: zeros, but for some pieces.
#[derive(Clone, Default)]
pub struct File {
    /// Bytes in all.
    pub len: u64,
    /// Pieces, with their offsets.
    pub pieces: Vec<(u64, Vec<u8>)>,
    /// Lines of the head that tell it from other files.
    pub identity: String,
}

impl File {
    /// A file of these bytes, at the start of so many.
    pub fn new(bytes: impl Into<Vec<u8>>, len: u64) -> File {
        File { len, pieces: vec![(0, bytes.into())], identity: "ETag: \"one\"\r\n".to_owned() }
    }

    /// Bytes of a range.
    pub fn bytes(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        for (offset, piece) in &self.pieces {
            let (start, end) = (range.start.max(*offset), range.end.min(offset + piece.len() as u64));
            if start < end {
                let from = &piece[(start - offset) as usize..(end - offset) as usize];
                bytes[(start - range.start) as usize..(end - range.start) as usize].copy_from_slice(from);
            }
        }
        bytes
    }

    /// Answers as servers do.
    pub fn answer(&self, question: &Question, out: &mut dyn Write) -> io::Result<()> {
        let asked = question.range();
        if asked.start >= self.len {
            return write!(
                out,
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
                self.len
            );
        }
        let range = asked.start..asked.end.min(self.len);
        let (last, len, total, identity) = (range.end - 1, range.end - range.start, self.len, &self.identity);
        write!(
            out,
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {}-{last}/{total}\r\nContent-Length: {len}\r\n{identity}\r\n",
            range.start
        )?;
        out.write_all(&self.bytes(range))
    }
}
