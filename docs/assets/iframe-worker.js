/* Search in pages that are opened from the disk, where browsers refuse workers: the worker's script runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      this.waiting = []
      const load = (...urls) => Promise.all(urls.map(one => new Promise((done, failed) => {
        const script = this.inside.document.createElement("script")
        script.src = one
        script.onload = done
        script.onerror = failed
        this.inside.document.body.appendChild(script)
      })))
      this.inside.importScripts = load
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      load(url).then(() => {
        this.waiting.forEach(data => this.hand(data))
        this.waiting = null
      })
    }
    hand(data) { this.inside.dispatchEvent(new MessageEvent("message", { data })) }
    postMessage(data) { this.waiting ? this.waiting.push(data) : this.hand(data) }
    terminate() { this.inside.frameElement.remove() }
  }
}
