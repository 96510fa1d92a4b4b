//! A server with prepared answers, and the program that calls it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
};

/// A request: its first line, its headers in lower case, and its body.
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// Gives each request the next answer: a status, an `ETag` and a body.
pub(crate) struct Prepared {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Prepared {
    pub(crate) fn start(answers: Vec<(u16, &'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for (status, etag, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                seen.lock().unwrap().push(request(&stream));
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} Prepared\r\nETag: {etag}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, requests }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn command(arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tao-slurm"));
        command.args(arguments).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program for this server with this standard input.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        Self::run_with(arguments, input, &[("TAO_SLURM_URL", &self.url)])
    }

    /// Runs the program with this standard input and environment.
    pub(crate) fn run_with(arguments: &[&str], input: &str, environment: &[(&str, &str)]) -> Output {
        let mut child = Self::command(arguments).envs(environment.iter().copied()).spawn().unwrap();
        // A program that refuses its arguments does not read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Starts the program for this server.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        Self::command(arguments).env("TAO_SLURM_URL", &self.url).spawn().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

fn request(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut headers, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.to_lowercase();
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        headers.push_str(&header);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { line: line.trim().to_owned(), headers, body: String::from_utf8(body).unwrap() }
}
