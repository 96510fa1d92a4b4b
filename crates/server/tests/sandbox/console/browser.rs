//! A real browser: Debian's Chromium without a window, through its driver.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use axum::http::Method;
use base64::{Engine, prelude::BASE64_STANDARD};
use fantoccini::{Client, ClientBuilder, Locator, wd::WebDriverCompatibleCommand};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::{ParseError, Url};

use crate::service::until;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// How long a page may take to change, on an idle machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A browser with one page. Its requests and messages are kept by it until [`finish`](Self::finish).
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Child,
    _profile: TempDir,
    /// The address of the service.
    pub(crate) base: String,
}

/// A command of Chromium's driver beyond the standard.
#[derive(Debug)]
struct Own {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// A driver that listens, and its port.
fn driver() -> (Child, u16) {
    let mut said = String::new();
    // It takes a port of IPv6 that is free, and ends if IPv4 has it in use (`StartServer` of its server/chromedriver_server.cc).
    for _ in 0..5 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            // The browser and its helpers are in the same group.
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for line in BufReader::new(driver.stdout.as_mut().unwrap()).lines().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once("started successfully on port ") {
                return (driver, rest.trim_end_matches('.').parse().unwrap());
            }
            said += &(line + "\n");
        }
        driver.wait().unwrap();
    }
    panic!("chromedriver does not start: {said}");
}

impl Browser {
    /// Starts a driver and its browser, for the service at this address.
    pub(crate) fn start(base: &str) -> Self {
        let (driver, port) = driver();
        let address = format!("http://127.0.0.1:{port}");
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let profile = tempfile::tempdir().unwrap();
        // As long as a test may take, because a busy machine needs several times as long as an idle one.
        let patience = Duration::from_mins(20).as_secs() * 1000;
        let wanted = json!({
            "timeouts": {"script": patience, "pageLoad": patience},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {
                "binary": "/usr/bin/chromium",
                // Tests may run as root and in containers with little shared memory. What moves is drawn all the time.
                "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-prefers-reduced-motion", "--hide-scrollbars", "--disable-background-networking", format!("--user-data-dir={}", profile.path().display())],
            },
        });
        let client = runtime.block_on(async {
            let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
            builder.capabilities(wanted.as_object().unwrap().clone()).connect(&address).await.unwrap()
        });
        let browser = Self { runtime, client, driver, _profile: profile, base: base.to_owned() };
        browser.view(1280, false);
        // A new browser opens a page of its own.
        browser.open("about:blank");
        browser.requested();
        browser.complaints();
        browser
    }

    fn own(&self, path: &'static str, body: Value) -> Value {
        self.runtime.block_on(self.client.issue_cmd(Own { path, body })).unwrap()
    }

    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.own("goog/cdp/execute", json!({"cmd": command, "params": parameters}))
    }

    /// The width of the page, and whether its visitor prefers dark colours.
    pub(crate) fn view(&self, width: u32, dark: bool) {
        let metrics = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Runs this script in each page and frame before its own ones. `is_unprotected`: the policy of pages is not enforced.
    pub(crate) fn watch(&self, script: &str, is_unprotected: bool) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": script}));
        self.devtools("Page.setBypassCSP", &json!({"enabled": is_unprotected}));
    }

    /// Opens a page of the service, or of another address.
    pub(crate) fn open(&self, address: &str) {
        let address =
            if address.starts_with('/') { format!("{}{address}", self.base) } else { address.to_owned() };
        self.runtime.block_on(self.client.goto(&address)).unwrap();
    }

    /// The path and query of the page.
    pub(crate) fn place(&self) -> String {
        let url = self.runtime.block_on(self.client.current_url()).unwrap();
        url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
    }

    pub(crate) fn title(&self) -> String {
        self.runtime.block_on(self.client.title()).unwrap()
    }

    /// The value of a function body in the page.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.runtime.block_on(self.client.execute(script, Vec::new())).unwrap()
    }

    /// The visible text of the first element; none without one.
    pub(crate) fn text(&self, css: &str) -> Option<String> {
        let text = self.run(&format!("return document.querySelector({})?.innerText ?? null", json!(css)));
        text.as_str().map(str::to_owned)
    }

    /// Waits until the element's text contains this.
    pub(crate) fn sees(&self, css: &str, text: &str) {
        until(&format!("{css} to have {text:?}"), PATIENCE, || {
            self.text(css).is_some_and(|shown| shown.contains(text))
        });
    }

    /// Clicks on the element when it is there. One that is renewed just then is looked for again.
    pub(crate) fn click(&self, css: &str) {
        self.act(css, || async { self.client.find(Locator::Css(css)).await?.click().await });
    }

    /// Clicks on the link or button with this text.
    pub(crate) fn press(&self, text: &str) {
        let path = format!("//a[normalize-space()='{text}'] | //button[normalize-space()='{text}']");
        self.act(text, || async { self.client.find(Locator::XPath(&path)).await?.click().await });
    }

    /// Replaces what a field has.
    pub(crate) fn fill(&self, css: &str, text: &str) {
        self.act(css, || async {
            let field = self.client.find(Locator::Css(css)).await?;
            field.clear().await?;
            field.send_keys(text).await
        });
    }

    fn act<F: Future<Output = Result<(), fantoccini::error::CmdError>>>(
        &self,
        what: &str,
        act: impl Fn() -> F,
    ) {
        until(what, PATIENCE, || self.runtime.block_on(act()).is_ok());
    }

    /// Sends keys to the element that has the focus.
    pub(crate) fn keys(&self, keys: &str) {
        self.runtime
            .block_on(async { self.client.active_element().await.unwrap().send_keys(keys).await })
            .unwrap();
    }

    /// Answers the question of the browser with yes, and returns it.
    pub(crate) fn agree(&self) -> String {
        self.runtime.block_on(async {
            let asked = self.client.get_alert_text().await.unwrap();
            self.client.accept_alert().await.unwrap();
            asked
        })
    }

    /// Keeps a picture of the whole page in `target/console`.
    pub(crate) fn picture(&self, name: &str) {
        self.picture_in("target/console", name, "html");
    }

    /// Keeps a picture of the page, down to the end of this element, in this directory of the repository.
    pub(crate) fn picture_in(&self, directory: impl AsRef<Path>, name: &str, last: &str) {
        let end = format!(
            "const end = document.querySelector({});
             const bottom = Math.ceil(end.getBoundingClientRect().bottom + scrollY) + (end.localName === 'tr' ? 0 : 12);
             return [innerWidth, Math.min(bottom, document.documentElement.scrollHeight, 4000)]",
            json!(last)
        );
        let size = self.run(&end);
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1});
        let shown = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let picture = self.devtools("Page.captureScreenshot", &shown);
        let dir = PathBuf::from(ROOT).join(directory);
        fs::create_dir_all(&dir).unwrap();
        let bytes = BASE64_STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        fs::write(dir.join(format!("{name}.png")), bytes).unwrap();
    }

    /// Where the page breaks a rule of WCAG 2.1 A or AA that axe-core can check.
    pub(crate) fn faults(&self) -> Value {
        if self.run("return 'axe' in window") == json!(false) {
            let axe = fs::read_to_string(format!("{ROOT}/.tools/axe/node_modules/axe-core/axe.min.js"))
                .unwrap_or_else(|error| panic!("axe-core: {error}; run `ci/setup --test` first"));
            self.run(&axe);
        }
        let script = "
            const done = arguments[arguments.length - 1];
            const rules = {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']};
            const told = (node) => node.html + ' ' + node.failureSummary;
            const fault = (rule) => [rule.id, rule.help, rule.nodes.slice(0, 3).map(told)];
            axe.run(document, rules).then((found) => done(found.violations.map(fault)), (error) => done([String(error)]));";
        self.runtime.block_on(self.client.execute_async(script, Vec::new())).unwrap()
    }

    /// Fails if the page has such a fault, or is wider than the window.
    pub(crate) fn check(&self, name: &str) {
        let faults = self.faults();
        assert!(faults == json!([]), "{name}: {faults:#}");
        let width = self.run("return [document.documentElement.scrollWidth, innerWidth]");
        assert!(
            width[0].as_u64() <= width[1].as_u64(),
            "{name} is {} wide in a window of {}",
            width[0],
            width[1]
        );
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.own("se/log", json!({"type": kind}));
        entries.as_array().unwrap().clone()
    }

    /// The addresses that were requested since the last call.
    pub(crate) fn requested(&self) -> Vec<String> {
        let message =
            |entry: &Value| -> Value { serde_json::from_str(entry["message"].as_str().unwrap()).unwrap() };
        let sent = |entry: &Value| {
            let event = &message(entry)["message"];
            let is_request = event["method"] == "Network.requestWillBeSent";
            is_request.then(|| event["params"]["request"]["url"].as_str().unwrap().to_owned())
        };
        self.log("performance").iter().filter_map(sent).collect()
    }

    /// The same. Fails if one of them is neither of the service nor of this origin.
    pub(crate) fn requested_here_or_at(&self, origin: &str) -> Vec<String> {
        let requested = self.requested();
        let is_of = |url: &str, origin: &str| {
            url.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let is_elsewhere = |url: &&String| !is_of(url, &self.base) && !is_of(url, origin);
        let elsewhere: Vec<_> = requested.iter().filter(is_elsewhere).collect();
        assert_eq!(elsewhere, [""; 0], "requests to other origins");
        requested
    }

    /// What the browser complained about since the last call, such as violations of the policy and errors of scripts.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let severe = self.log("browser").into_iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// Fails if a page asked another origin for something, or if the browser complained. `expected`: complaints that contain this are
    /// answers of the service that the test wants.
    pub(crate) fn finish(self, expected: &[&str]) {
        let base = self.base.clone();
        self.finish_beside(&base, expected);
    }

    /// The same for a visitor who was also sent to this origin.
    pub(crate) fn finish_beside(self, origin: &str, expected: &[&str]) {
        self.requested_here_or_at(origin);
        let is_expected = |text: &String| expected.iter().any(|expected| text.contains(expected));
        let complaints: Vec<_> = self.complaints().into_iter().filter(|text| !is_expected(text)).collect();
        assert_eq!(complaints, [""; 0], "complaints of the browser");
    }
}

impl Drop for Browser {
    #[expect(clippy::print_stderr, reason = "shown with the reason why the test failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the browser is at {}: {}", self.place(), self.text("main").unwrap_or_default());
            self.picture("failed");
        }
        // A browser that is asked to end may take a minute.
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.driver.wait();
    }
}
