use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use super::{super::issuer_http::MAX_BYTES, *};

/// A server that sends these responses, each on its own connection.
fn issuer(answers: Vec<String>) -> Source {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()), "the end of the request's head");
            // The client may close the connection early.
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    Source::url(url, &Authorities::default())
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn keys_are_fetched_from_a_url() {
    let document = r#"{"keys": []}"#;
    assert_eq!(issuer(vec![answer("200 OK", document)]).read().await.unwrap(), document.as_bytes());
}

#[tokio::test]
async fn failures_long_documents_and_redirects_are_errors() {
    let elsewhere = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 2\r\n\r\n{}";
    let long = "x".repeat(usize::try_from(MAX_BYTES).unwrap() + 1);
    for (sent, expected) in [
        (answer("500 Oh", "{}"), "the response is 500"),
        (elsewhere.to_owned(), "the response is 302"),
        (answer("200 OK", &long), "has more than 262144 bytes"),
    ] {
        let error = issuer(vec![sent]).read().await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let gone = Source::url("http://127.0.0.1:1/keys".to_owned(), &Authorities::default());
    assert!(gone.read().await.unwrap_err().starts_with("http://127.0.0.1:1/keys: "));
}

#[tokio::test]
async fn a_file_is_read_each_time() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let source = Source::File(file.path().to_owned());
    std::fs::write(file.path(), "one").unwrap();
    assert_eq!(source.read().await.unwrap(), b"one");
    std::fs::write(file.path(), "two").unwrap();
    assert_eq!(source.read().await.unwrap(), b"two");
    assert!(Source::File("/nowhere/keys".into()).read().await.unwrap_err().contains("/nowhere/keys"));
}
