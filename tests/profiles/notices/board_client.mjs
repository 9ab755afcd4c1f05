// The notice board's callers (source 000, "Usage Examples") as a page of the board would run them: no header but the
// one they set, paths without a host. `node board_client.mjs ADDRESS SESSION TASK`; prints what it heard as JSON.

const [address, session, task] = process.argv.slice(2)

// What a browser adds by itself: the host, its own site, who is signed in.
const send = globalThis.fetch
globalThis.fetch = (path, options) =>
  send(address + path, { ...options, headers: { ...options.headers, Origin: address, Cookie: `hr_session=${session}` } })

const tasks = {
  async basic() {
    const response = await fetch('/api/rag/chat', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: '12월 정착지원금 신청 방법이 어떻게 되나요?' }),
    })
    const { answer, sources } = await response.json()
    return { status: response.status, answer, titles: sources.map((source) => source.title) }
  },

  // Each piece that arrives is taken apart by itself, and what does not begin with `data: ` is passed over.
  async streaming() {
    const response = await fetch('/api/rag/chat', {
      method: 'POST',
      body: JSON.stringify({ query: '12월 정착지원금 신청 방법이 어떻게 되나요?', options: { stream: true } }),
    })
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    const kinds = []
    let text = ''
    while (true) {
      const { done, value } = await reader.read()
      if (done) break
      for (const line of decoder.decode(value).split('\n\n')) {
        if (!line.startsWith('data: ')) continue
        const event = JSON.parse(line.slice(6))
        kinds.push(event.type)
        if (event.type === 'chunk') text += event.data
      }
    }
    return { status: response.status, kinds, text }
  },

  // As an EventSource reads: lines, comments passed over, an event at each empty line, whatever the pieces are.
  async events() {
    const response = await fetch('/api/rag/chat', {
      method: 'POST',
      body: JSON.stringify({ query: '12월 정착지원금 신청 방법이 어떻게 되나요?', options: { stream: true } }),
    })
    const events = []
    let rest = '', data = []
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\n')
      rest = lines.pop()
      for (const line of lines) {
        if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
        else if (line === '' && data.length) events.push(JSON.parse(data.splice(0).join('\n')))
      }
    }
    return { kind: response.headers.get('content-type'), events }
  },

  async leaving() {
    const gone = new AbortController()
    const response = await fetch('/api/rag/chat', {
      method: 'POST',
      body: JSON.stringify({ query: '12월 정착지원금 신청 방법이 어떻게 되나요?', options: { stream: true } }),
      signal: gone.signal,
    })
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    while (!decoder.decode((await reader.read()).value).includes('"chunk"'));
    gone.abort()
    return { left: true }
  },

  async filtered() {
    const response = await fetch('/api/rag/search', {
      method: 'POST',
      body: JSON.stringify({
        query: 'MGR 컨퍼런스',
        options: { categoryFilter: ['notice-bmmd-data'], dateFrom: '2024-01-01', recencyBoost: true, rerankTopN: 3 },
      }),
    })
    return { status: response.status, ...(await response.json()) }
  },
}

console.log(JSON.stringify(await tasks[task]()))
