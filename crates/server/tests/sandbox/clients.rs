//! Clients generated from the OpenAPI document, each by a generator of its language. Each submits a job, waits until it is
//! Done and reads its log. The test fails if the document and the service use different field names.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::service::Service;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/clients");
/// Installed by `ci/setup --test`.
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools");
/// The build output stays for the next run, which is then faster.
const MADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients");
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/openapi.json");

/// Generates and runs a client, and returns its output. Arguments: the address, and a token.
type Client = fn(&str, &str) -> String;

/// A new directory with our files for a language.
fn place(language: &str) -> PathBuf {
    let place = Path::new(MADE).join(language);
    let _ = fs::remove_dir_all(&place);
    copy(&Path::new(HERE).join(language), &place);
    place
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn tool(path: &str) -> PathBuf {
    let tool = Path::new(TOOLS).join(path);
    assert!(tool.exists(), "{path} is not installed; run ci/setup --test");
    tool
}

/// The output of a program that must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// openapi-generator, which makes clients in many languages.
fn generator(name: &str, output: &Path) -> Command {
    let mut generate = Command::new(tool("openapi-generator/bin/openapi-generator-cli"));
    generate.args(["generate", "--generator-name", name, "--input-spec", DOCUMENT, "--output"]).arg(output);
    generate
}

fn openapi_generator(address: &str, token: &str) -> String {
    let place = place("openapi_generator");
    run(generator("python", &place).args(["--package-name", "tao_slurm_client"]));
    let python = tool("openapi-generator/bin/python");
    run(Command::new(python).arg("drive.py").args([address, token]).current_dir(place))
}

fn typescript_fetch(address: &str, token: &str) -> String {
    let place = place("typescript_fetch");
    run(&mut generator("typescript-fetch", &place.join("made")));
    run(Command::new("node").arg(tool("typescript/node_modules/typescript/bin/tsc")).current_dir(&place));
    run(Command::new("node").args(["out/drive.js", address, token]).current_dir(place))
}

fn python(address: &str, token: &str) -> String {
    let place = place("python");
    let client = place.join("tao_slurm_client");
    let mut generate = Command::new(tool("openapi-python-client/bin/openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--fail-on-warning", "--path", DOCUMENT]);
    generate.arg("--output-path").arg(client).arg("--config").arg(place.join("generator.yaml"));
    run(&mut generate);
    let python = tool("openapi-python-client/bin/python");
    run(Command::new(python).arg("drive.py").args([address, token]).current_dir(place))
}

fn typescript(address: &str, token: &str) -> String {
    let place = place("typescript");
    std::os::unix::fs::symlink(tool("typescript/node_modules"), place.join("node_modules")).unwrap();
    let node = |program: &str| {
        let mut node = Command::new("node");
        node.arg(program).current_dir(&place);
        node
    };
    run(node("node_modules/openapi-typescript/bin/cli.js").args([DOCUMENT, "--output", "service.d.ts"]));
    run(&mut node("node_modules/typescript/bin/tsc"));
    run(node("out/drive.js").args([address, token]))
}

fn rust(address: &str, token: &str) -> String {
    let place = place("rust");
    let made = place.join("made");
    let mut generate = generator("rust", &made);
    generate.args(["--library", "reqwest"]);
    run(generate.args(["--global-property", "models,apis,supportingFiles,modelDocs=false,apiDocs=false"]));
    for module in ["apis", "models"] {
        fs::rename(made.join("src").join(module), place.join("src").join(module)).unwrap();
    }
    // The service's build has most of its dependencies.
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--offline", "--locked", "--target-dir", target]).current_dir(place);
    run(&mut cargo);
    run(Command::new(Path::new(target).join("debug/generated-client")).args([address, token]))
}

#[test]
fn clients_of_five_generators_run_a_job_to_its_end() {
    let service = Service::start_with(&[("TAO_SLURM_AUTH", "tokens")]);
    let made = service.run(&["token", "create", "--owner", "clients", "--scope", "read,write"]);
    let token = String::from_utf8(made.stdout).unwrap();
    let (address, token) = (service.url.as_str(), token.trim());

    let clients: [(&str, Client); 5] = [
        ("Python", python),
        ("TypeScript", typescript),
        ("Rust", rust),
        ("openapi-generator", openapi_generator),
        ("typescript-fetch", typescript_fetch),
    ];
    thread::scope(|scope| {
        let at_work =
            clients.map(|(language, client)| (language, scope.spawn(move || client(address, token))));
        for (language, client) in at_work {
            let text = client.join().unwrap_or_else(|_| panic!("the client in {language} failed"));
            assert!(text.starts_with("Done "), "{language}: {text}");
            assert!(text.contains(&format!("hello from {language}\n")), "{language}: {text}");
        }
    });
}
