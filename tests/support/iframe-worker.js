/* The site's search where its pages are opened from a folder (file:), from which browsers start no worker: what would
   run in one runs in a hidden frame, and the theme, which knows this name, asks for nothing else. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise(done => {
        this.frame.addEventListener("load", () => {
          const inner = this.frame.contentWindow, script = inner.document.createElement("script");
          inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
          script.addEventListener("load", () => done(inner));
          script.src = address;
          inner.document.body.append(script);
        }, { once: true });
      });
      document.body.append(this.frame);
    }

    postMessage(data) {
      this.ready.then(inner => inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
