//! Questions and answers of the store, one connection at a time.
//!
//! Invariant: no more of an answer is read than was asked for; the store is handed the range it asked for, or an error; and
//! of what servers say nothing is shown.

use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use http::{Method, StatusCode};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use super::access::Access;
use super::address::Scope;
use super::answer::{self, Answer, AnswerError};
use super::error::RemoteError;
use super::gate::Gate;
use super::place::Place;
use super::tls;

/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Bytes of an answer that is not a range: tokens of cloud stores.
const SMALL: u64 = 1 << 20;

/// Bytes of the head of an answer.
const HEAD: usize = 32 << 10;

/// A client, and how it is made: copies are one client.
#[derive(Clone)]
pub struct Transport(Arc<Client>);

struct Client {
    access: Access,
    /// Clients without and with encryption.
    agents: [OnceLock<Agent>; 2],
    gate: Gate,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The reason of the last failure.
    failed: Option<RemoteError>,
    /// The file has no bytes.
    empty: bool,
    /// Place that the first question led to, and its scope.
    found: Option<(Place, Place, Scope)>,
    /// Scope of the host that was named.
    first: Option<Scope>,
}

/// A place to ask, and the nearest scope it may have.
struct Hop {
    place: Place,
    nearest: Scope,
}

impl Transport {
    /// A client that has asked nothing yet.
    pub fn new(access: Access) -> Transport {
        let (agents, state) = (Default::default(), Mutex::new(State::default()));
        Transport(Arc::new(Client { access, agents, gate: Gate::default(), state }))
    }

    /// Takes the reason of the last failure.
    pub fn failure(&self) -> Option<RemoteError> {
        self.0.state().failed.take()
    }

    /// Returns whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.state().empty
    }
}

impl Client {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agent(&self, encrypted: bool) -> Result<&Agent, RemoteError> {
        let agent = &self.agents[usize::from(encrypted)];
        if let Some(agent) = agent.get() {
            return Ok(agent);
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy would look names up by itself.
            .proxy(None)
            .timeout_global(Some(self.access.timeout))
            .max_response_header_size(HEAD)
            .user_agent(concat!("edgepack/", env!("CARGO_PKG_VERSION")));
        if encrypted {
            config = config.tls_config(tls::settings()?);
        }
        Ok(agent.get_or_init(|| Agent::with_parts(config.build(), DefaultConnector::default(), self.gate.clone())))
    }

    /// Asks one place once.
    fn ask(
        &self,
        hop: &Hop,
        headers: &HeaderMap,
        method: &Method,
        body: &[u8],
    ) -> Result<(http::Response<Body>, Scope), RemoteError> {
        let agent = self.agent(hop.place.is_encrypted())?;
        let mut request = http::Request::builder().method(method.clone()).uri(hop.place.url());
        for (name, value) in headers {
            request = request.header(name.clone(), value.clone());
        }
        self.gate.open(hop.nearest, !hop.place.is_encrypted());
        let sent = match body.is_empty() {
            true => agent.run(request.body(()).map_err(|_| RemoteError::Failed)?),
            false => agent.run(request.body(body).map_err(|_| RemoteError::Failed)?),
        };
        let scope = self.gate.found()?;
        let answer = sent.map_err(|error| self.failure(error))?;
        Ok((answer, scope.unwrap_or(hop.nearest)))
    }

    /// Asks for a range, wherever the server sends.
    fn range(&self, place: &Place, asked: &Range<u64>, given: &HeaderMap) -> Result<HttpResponse, RemoteError> {
        let (mut hop, mut known) = self.start(place);
        for redirects in 0..=REDIRECTS {
            let answer = self.ask(&hop, &self.headers(place, &hop.place, given), &Method::GET, &[]);
            let (mut answer, scope) = answer?;
            let status = answer.status();
            if known && status.is_client_error() && hop.place != *place {
                // Places that servers send to are good for a while alone.
                self.state().found = None;
                (hop, known) = self.start(place);
                continue;
            }
            if redirects == 0 && !known {
                self.state().first.get_or_insert(scope);
            }
            match status {
                StatusCode::PARTIAL_CONTENT => {
                    let head = Answer::read(asked, answer.headers())?;
                    let bytes = self.body(answer.body_mut(), head.len())?;
                    self.state().found = Some((place.clone(), hop.place, scope));
                    return response(status, head.headers(), bytes);
                }
                StatusCode::RANGE_NOT_SATISFIABLE if asked.start == 0 && answer::is_empty(answer.headers()) => {
                    self.state().empty = true;
                    return Err(RemoteError::Status { status: status.as_u16() });
                }
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    let mut locations = answer.headers().get_all(LOCATION).iter();
                    let location = locations.next().filter(|_| locations.next().is_none());
                    let location = location.and_then(|location| location.to_str().ok());
                    let location = location.ok_or(RemoteError::Redirect("without saying where"))?;
                    hop = Hop { place: hop.place.redirected(location)?, nearest: scope };
                }
                StatusCode::OK => return Err(RemoteError::NoRanges),
                StatusCode::PRECONDITION_FAILED => return Err(RemoteError::Replaced),
                // Overloaded: the store asks again after a while.
                status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                    self.state().failed = Some(RemoteError::Status { status: status.as_u16() });
                    return response(status, HeaderMap::new(), Vec::new());
                }
                status => return Err(RemoteError::Status { status: status.as_u16() }),
            }
        }
        Err(RemoteError::Redirect("again and again"))
    }

    /// Returns the place to begin at: the one that the last question led to, and true, or else the one that was named.
    fn start(&self, place: &Place) -> (Hop, bool) {
        let state = self.state();
        if let Some((named, found, scope)) = &state.found
            && named == place
        {
            return (Hop { place: found.clone(), nearest: *scope }, true);
        }
        let own = if place.names_this_machine() { Scope::Loopback } else { Scope::Private };
        (Hop { place: place.clone(), nearest: state.first.unwrap_or(own) }, false)
    }

    /// The headers for one place. Elsewhere than at the server that was named, nothing goes out but the question.
    fn headers(&self, named: &Place, place: &Place, given: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let is_question = |name: &HeaderName| [RANGE, IF_MATCH, IF_UNMODIFIED_SINCE].contains(name);
        for (name, value) in given.iter().filter(|(name, _)| place == named || is_question(name)) {
            headers.append(name.clone(), value.clone());
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let token = self.access.credentials.as_ref().filter(|_| place.is_at(named));
        let token = token.and_then(|credentials| credentials.header(place));
        if let Some(mut token) = token.and_then(|token| HeaderValue::from_str(token).ok()) {
            token.set_sensitive(true);
            headers.entry(AUTHORIZATION).or_insert(token);
        }
        headers
    }

    /// Asks what is not a range, of the place alone that is named.
    fn small(&self, place: &Place, request: &HttpRequest) -> Result<HttpResponse, RemoteError> {
        let nearest = if place.names_this_machine() { Scope::Loopback } else { Scope::Private };
        let hop = Hop { place: place.clone(), nearest };
        let body = request.body().as_bytes().ok_or(RemoteError::Failed)?;
        let (mut answer, _) = self.ask(&hop, request.headers(), request.method(), body)?;
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(SMALL + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(error.into()))?;
        if bytes.len() as u64 > SMALL {
            return Err(AnswerError::Endless { want: SMALL }.into());
        }
        response(answer.status(), answer.headers().clone(), bytes)
    }

    /// Reads a body of exactly `want` bytes.
    fn body(&self, body: &mut Body, want: u64) -> Result<Vec<u8>, RemoteError> {
        let mut bytes = Vec::new();
        let read = body.as_reader().take(want + 1).read_to_end(&mut bytes);
        let have = bytes.len() as u64;
        match read {
            _ if have > want => Err(AnswerError::Endless { want }.into()),
            Ok(_) if have < want => Err(AnswerError::Truncated { have, want }.into()),
            Ok(_) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(AnswerError::Truncated { have, want }.into())
            }
            Err(error) => Err(self.failure(error.into())),
        }
    }

    /// The reason for which a question failed, without words of the server.
    fn failure(&self, error: ureq::Error) -> RemoteError {
        use ureq::Error;
        let connection = |message: &str| RemoteError::Connection(message.to_owned());
        match error {
            Error::Timeout(_) => RemoteError::Timeout(self.access.timeout.as_secs().max(1)),
            Error::HostNotFound => connection("the host has no address"),
            Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                RemoteError::Timeout(self.access.timeout.as_secs().max(1))
            }
            Error::Io(error) => RemoteError::Connection(error.to_string()),
            Error::Rustls(error) => RemoteError::Tls(error.to_string()),
            Error::Tls(message) => RemoteError::Tls(message.to_owned()),
            Error::ConnectionFailed => connection("nobody answers"),
            Error::LargeResponseHeader(..) => AnswerError::Header("head, which is too long,").into(),
            Error::Protocol(_) | Error::Http(_) | Error::BodyStalled => AnswerError::Header("form").into(),
            _ => RemoteError::Failed,
        }
    }

    fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, RemoteError> {
        let place = Place::parse(&request.uri().to_string(), self.access.loopback_http)?;
        let asked = request.headers().get(RANGE).map(|range| range.to_str().ok().and_then(question));
        match asked {
            Some(asked) if request.method() == Method::GET => {
                self.range(&place, &asked.ok_or(RemoteError::Failed)?, request.headers())
            }
            _ => self.small(&place, request),
        }
    }
}

/// The range of a question: `bytes=FIRST-LAST`.
fn question(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(first..last.checked_add(1)?)
}

fn response(status: StatusCode, headers: HeaderMap, bytes: Vec<u8>) -> Result<HttpResponse, RemoteError> {
    let mut response = HttpResponse::new(Bytes::from(bytes).into());
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(response)
}

impl HttpService for Transport {
    fn call<'life0, 'async_trait>(
        &'life0 self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let answer = self.0.answer(&request).map_err(|error| {
            // A connection may break; what a server says does not get better.
            let kind = match error {
                RemoteError::Connection(_) => HttpErrorKind::Interrupted,
                _ => HttpErrorKind::Unknown,
            };
            self.0.state().failed = Some(error.clone());
            HttpError::new(kind, error)
        });
        Box::pin(std::future::ready(answer))
    }
}

impl HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("access", &self.0.access).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use edgepack_format::limits::Limits;

    use super::*;

    /// A host that was outside when it was first asked is not this machine later, nor is one that such a host sends to.
    #[test]
    fn names_that_change_their_address_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let access =
            Access { loopback_http: true, timeout: Duration::from_secs(5), credentials: None, limits: Limits::DEFAULT };
        let client = Transport::new(access).0;
        let place = Place::parse(&url, true).unwrap();
        for redirected in [false, true] {
            let found = redirected.then(|| (place.clone(), place.clone(), Scope::Public));
            *client.state() = State { first: Some(Scope::Public), found, ..State::default() };
            let answer = client.range(&place, &(0..10), &HeaderMap::new());
            assert!(matches!(answer, Err(RemoteError::Address { .. })), "{answer:?}");
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nobody connects");
    }

    #[test]
    fn questions_are_read_as_the_store_writes_them() {
        assert_eq!(question("bytes=0-9"), Some(0..10));
        for bad in ["bytes=9-0", "bytes=-9", "bytes=9-", "bytes=0-18446744073709551615", "", "lines=0-9"] {
            assert_eq!(question(bad), None, "{bad}");
        }
    }
}
