//! Objects of cloud stores, from a server on this machine that looks at what the store would look at: the path, the
//! credentials, the range. No store is asked.

use std::process::Output;

use super::commands::{edgepack, read};
use super::server::{File, Question, Server};

/// A store: the name of an object in it, the settings of the environment for a server at an address, and what the server sees.
struct Store {
    object: &'static str,
    settings: fn(&str) -> Vec<(&'static str, String)>,
    path: &'static str,
    /// Beginning of the header that proves who asks.
    proof: &'static str,
}

/// Base64 of `SECRET SECRET SECRET`.
const KEY: &str = "U0VDUkVUIFNFQ1JFVCBTRUNSRVQ=";

const STORES: [Store; 3] = [
    Store {
        object: "s3://bucket/a/model.pte",
        settings: |server| {
            vec![
                ("AWS_ENDPOINT_URL", server.to_owned()),
                ("AWS_REGION", "eu-west-1".to_owned()),
                ("AWS_ACCESS_KEY_ID", "KEY".to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "SECRET".to_owned()),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
            ]
        },
        path: "/bucket/a/model.pte",
        proof: "AWS4-HMAC-SHA256 Credential=KEY/",
    },
    Store {
        object: "gs://bucket/a/model.pte",
        settings: |server| {
            vec![
                ("GOOGLE_BASE_URL", server.to_owned()),
                ("GOOGLE_BEARER_TOKEN", "SECRET".to_owned()),
                ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
            ]
        },
        path: "/bucket/a/model.pte",
        proof: "Bearer SECRET",
    },
    Store {
        object: "az://container/a/model.pte",
        settings: |server| {
            vec![
                ("AZURE_STORAGE_ENDPOINT", server.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_NAME", "account".to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
                ("AZURE_ALLOW_HTTP", "true".to_owned()),
            ]
        },
        path: "/container/a/model.pte",
        proof: "SharedKey account:",
    },
];

impl Store {
    /// The command on the object, with these arguments behind it.
    fn run(&self, command: &str, more: &[&str], server: &Server) -> Output {
        let mut command = edgepack(&[command, self.object, "--loopback-http"]);
        command.args(more).env_clear();
        for (name, value) in (self.settings)(&format!("http://{}", server.host())) {
            command.env(name, value);
        }
        let output = command.output().expect("the command");
        for said in [&output.stdout, &output.stderr] {
            let said = String::from_utf8_lossy(said);
            assert!(!said.contains("SECRET") && !said.contains(KEY), "{}: {said}", self.object);
        }
        output
    }
}

/// A server of one file, with what stores say about an object.
fn serving(bytes: Vec<u8>) -> Server {
    let identity = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: \"one\"\r\n".to_owned();
    let len = bytes.len() as u64;
    Server::of(File { identity, ..File::new(bytes, len) })
}

/// The path of a question; stores may write its signs as numbers.
fn path(question: &Question) -> String {
    let path = question.path().split('?').next().unwrap_or_default();
    path.replace("%2F", "/").replace("%2E", ".")
}

#[test]
fn objects_are_read_with_credentials_of_the_environment() {
    let whole = read("classifier_portable.pte");
    for store in &STORES {
        let server = serving(whole.clone());
        let output = store.run("inspect", &["--json"], &server);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", store.object);
        let asked = server.asked();
        assert!(!asked.is_empty(), "{}", store.object);
        for one in &asked {
            assert_eq!(path(one), store.path);
            let proof = one.header("authorization").unwrap_or_default();
            assert!(proof.starts_with(store.proof), "{}: {one:?}", store.object);
        }
        // The head alone comes over; a signature is one of its question, so another question has another.
        assert!(server.sent() < whole.len() as u64, "{}: {} bytes", store.object, server.sent());

        let output = store.run("digest", &[], &server);
        let have = String::from_utf8_lossy(&output.stdout).into_owned();
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/corpus/models/classifier_portable.pte");
        let want = String::from_utf8(edgepack(&["digest", here]).output().unwrap().stdout).unwrap();
        assert_eq!(have.split(' ').next(), want.split(' ').next(), "{}", store.object);
    }
}

#[test]
fn a_refusal_of_a_store_is_a_failure_without_its_words() {
    for store in &STORES {
        let server = Server::new(|_, out| write!(out, "HTTP/1.1 403 SECRET\r\nContent-Length: 6\r\n\r\nSECRET"));
        let output = store.run("inspect", &[], &server);
        assert_eq!(output.status.code(), Some(3), "{}: {}", store.object, String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stderr).contains("403"), "{}", store.object);
    }
}

#[test]
fn credentials_of_a_store_stay_with_it() {
    for store in &STORES {
        let other = serving(read("mlp_portable.pte"));
        let to = other.url("elsewhere");
        let server =
            Server::new(move |_, out| write!(out, "HTTP/1.1 307 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"));
        let output = store.run("inspect", &[], &server);
        assert!(output.status.success(), "{}: {}", store.object, String::from_utf8_lossy(&output.stderr));
        let asked = other.asked();
        assert!(!asked.is_empty() && server.asked().iter().all(|one| one.header("authorization").is_some()));
        assert!(asked.iter().all(|one| one.header("authorization").is_none()), "{}: {asked:?}", store.object);
    }
}

/// Machines that hand out credentials are not asked for them.
#[test]
fn without_credentials_nothing_is_asked() {
    for (object, region) in
        [("s3://bucket/a.pte", Some("eu-west-1")), ("gs://bucket/a.pte", None), ("az://container/a.pte", None)]
    {
        let mut command = edgepack(&["inspect", object]);
        command.env_clear();
        if let Some(region) = region {
            command.env("AWS_REGION", region);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!([Some(2), Some(3)].contains(&output.status.code()), "{object}: {said}");
        assert!(said.contains("the environment does not say how to reach"), "{object}: {said}");
    }
}
