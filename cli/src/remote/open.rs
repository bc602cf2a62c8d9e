//! From a name to a file of a server.

use object_store::RetryConfig;
use object_store::http::HttpBuilder;
use object_store::path::Path;

use super::access::Access;
use super::error::RemoteError;
use super::name::shown;
use super::place::Place;
use super::source::RemoteSource;
use super::transport::Transport;

/// Opens the file of a URL, and reads its first bytes.
pub fn open(name: &str, access: &Access) -> Result<RemoteSource, RemoteError> {
    let transport = Transport::new(access.clone());
    let retry = RetryConfig { max_retries: 2, retry_timeout: access.timeout, ..RetryConfig::default() };
    let scheme = name.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    let is_object = !["", "https", "http"].contains(&&*scheme);
    let (store, path): (Box<dyn object_store::ObjectStore>, Path) = match is_object {
        true => object(name, &transport, retry)?,
        false => {
            let place = Place::parse(name, access.loopback_http)?;
            let store =
                HttpBuilder::new().with_url(place.url()).with_http_connector(transport.clone()).with_retry(retry);
            (Box::new(store.build().map_err(|_| RemoteError::Failed)?), Path::default())
        }
    };
    let source = RemoteSource::open(store, path, transport, shown(name), access.limits.fetch_bytes);
    source.map_err(|error| match error {
        // Without credentials, clients of stores ask a machine that hands some out.
        RemoteError::Unencrypted if is_object => RemoteError::Store(scheme),
        error => error,
    })
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
use super::cloud::object;

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
fn object(
    name: &str,
    _: &Transport,
    _: RetryConfig,
) -> Result<(Box<dyn object_store::ObjectStore>, Path), RemoteError> {
    let scheme = name.split_once("://").map_or(name, |(scheme, _)| scheme).to_ascii_lowercase();
    let feature = match scheme.as_str() {
        "s3" => "s3",
        "gs" => "gcs",
        _ => "azure",
    };
    Err(RemoteError::Feature { scheme, feature })
}
