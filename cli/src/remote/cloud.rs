//! Objects of cloud stores: `s3://BUCKET/KEY`, `gs://BUCKET/KEY`, `az://CONTAINER/KEY`, with credentials of the environment
//! as the stores' own tools take them. All they ask goes through the same client as other files of servers.

use object_store::path::Path;
use object_store::{ObjectStore, RetryConfig};

use super::error::RemoteError;
use super::transport::Transport;

/// Returns the store that a name is of, and the path of the object in it.
pub fn object(
    name: &str,
    transport: &Transport,
    retry: RetryConfig,
) -> Result<(Box<dyn ObjectStore>, Path), RemoteError> {
    let (scheme, bucket, key) = parts(name)?;
    let path = Path::parse(key).map_err(|_| RemoteError::Url("the path of the object is not one".to_owned()))?;
    Ok((store(scheme, bucket, transport, retry)?, path))
}

/// Scheme, bucket and key.
fn parts(name: &str) -> Result<(&str, &str, &str), RemoteError> {
    let wanted = || RemoteError::Url("of an object, it is SCHEME://BUCKET/KEY".to_owned());
    let (scheme, rest) = name.split_once("://").ok_or_else(wanted)?;
    let (bucket, key) = rest.split_once('/').ok_or_else(wanted)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if bucket.contains('@') {
        return Err(RemoteError::UserInfo);
    }
    if bucket.is_empty() || key.is_empty() || !bucket.bytes().all(plain) || key.contains(['?', '#']) {
        return Err(wanted());
    }
    Ok((scheme, bucket, key))
}

fn store(
    scheme: &str,
    bucket: &str,
    transport: &Transport,
    retry: RetryConfig,
) -> Result<Box<dyn ObjectStore>, RemoteError> {
    match scheme.to_ascii_lowercase().as_str() {
        #[cfg(feature = "s3")]
        "s3" => {
            let store = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
            let store = store.with_http_connector(transport.clone()).with_crypto_provider(super::crypto::provider()?);
            Ok(Box::new(store.build().map_err(|_| RemoteError::Store(scheme.to_owned()))?))
        }
        #[cfg(feature = "gcs")]
        "gs" => {
            let store = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
            let store = store.with_retry(retry).with_http_connector(transport.clone());
            let store = store.with_crypto_provider(super::crypto::provider()?);
            Ok(Box::new(store.build().map_err(|_| RemoteError::Store(scheme.to_owned()))?))
        }
        #[cfg(feature = "azure")]
        "az" => {
            let store = object_store::azure::MicrosoftAzureBuilder::from_env().with_container_name(bucket);
            let store = store.with_retry(retry).with_http_connector(transport.clone());
            let store = store.with_crypto_provider(super::crypto::provider()?);
            Ok(Box::new(store.build().map_err(|_| RemoteError::Store(scheme.to_owned()))?))
        }
        other => {
            let feature = match other {
                "s3" => "s3",
                "gs" => "gcs",
                _ => "azure",
            };
            Err(RemoteError::Feature { scheme: other.to_owned(), feature })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_bucket_and_a_key() {
        assert_eq!(parts("s3://bucket/a/b.pte"), Ok(("s3", "bucket", "a/b.pte")));
        for bad in ["s3://bucket", "s3:///key", "s3://bucket/", "s3://b?x/key", "s3://bucket/key?x", "s3://b:1/key"] {
            assert!(matches!(parts(bad), Err(RemoteError::Url(_))), "{bad}");
        }
        assert_eq!(parts("s3://key:secret@bucket/a"), Err(RemoteError::UserInfo));
    }
}
