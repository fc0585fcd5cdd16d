// Applies the changes of a page as they come. Texts of the cluster are set by textContent and never parsed.
'use strict';
(() => {
  const byId = (id) => document.getElementById(id);
  const stream = document.body.dataset.stream;

  // fill replaces the children of an element, unless they would be the same.
  const shown = new Map();
  function fill(id, items, make) {
    const now = JSON.stringify(items || []);
    if (shown.get(id) === now) return;
    shown.set(id, now);
    const focused = byId(id).contains(document.activeElement) ? document.activeElement.textContent : null;
    byId(id).replaceChildren(...(items || []).flatMap(make));
    if (focused !== null) {
      const again = [...byId(id).querySelectorAll('a')].find((a) => a.textContent === focused);
      (again || byId('content')).focus();
    }
  }
  function element(name, text) {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  // local reports whether a link leads to a page of the dashboard.
  const local = (href) => new URL(href, location.href).origin === location.origin;
  function anchor(link) {
    const a = element('a', link.text);
    if (local(link.href)) a.setAttribute('href', link.href);
    return a;
  }

  function head(h) {
    if (byId('summary').textContent !== h.summary) byId('summary').textContent = h.summary;
    byId('title').textContent = h.title;
    fill('actions', h.actions, (l) => { const a = anchor(l); a.className = 'button'; return [a]; });
    fill('links', h.links, (l) => [anchor(l)]);
    fill('notes', h.notes, (n) => [element('li', n)]);
    fill('facts', h.facts, (f) => [element('dt', f.name), element('dd', f.value)]);
    fill('pictures', h.pictures, (p) => {
      const img = element('img');
      if (local(p.src)) img.setAttribute('src', p.src);
      img.alt = p.alt;
      return [img];
    });
  }

  function cell(e, c) {
    e.className = c.mark || '';
    const a = e.firstElementChild;
    if (c.href && a && a.getAttribute('href') === c.href) {
      if (a.textContent !== c.text) a.textContent = c.text;
    } else if (c.href) {
      e.replaceChildren(anchor(c));
    } else if (e.textContent !== c.text || a) {
      e.textContent = c.text;
    }
  }

  const rows = new Map(); // of each table, by key
  function table(id, change) {
    const body = byId(id);
    if (!body) return;
    if (change.empty) byId(id + '-empty').textContent = change.empty;
    if (!rows.has(id)) rows.set(id, new Map([...body.children].map((tr) => [tr.dataset.key, tr])));
    const known = rows.get(id);
    for (const row of change.set || []) {
      let tr = known.get(row.key);
      if (!tr) {
        tr = element('tr');
        tr.dataset.key = row.key;
        row.cells.forEach((_, i) => {
          const e = element(i === 0 ? 'th' : 'td');
          if (i === 0) e.scope = 'row';
          tr.append(e);
        });
        known.set(row.key, tr);
        if (!change.ordered) body.append(tr);
      }
      row.cells.forEach((c, i) => cell(tr.children[i], c));
    }
    if (change.ordered) order(id, body, known, change.order || []);
  }
  // order puts the rows into their order, and removes the others. A row that is at its place is not moved, so it keeps the focus.
  function order(id, body, known, keys) {
    const wanted = new Set(keys);
    for (const [key, tr] of known) {
      if (!wanted.has(key)) { tr.remove(); known.delete(key); }
    }
    let at = body.firstElementChild;
    for (const key of keys) {
      const tr = known.get(key);
      if (tr === at) { at = at.nextElementSibling; } else if (tr) { body.insertBefore(tr, at); }
    }
    byId(id + '-empty').hidden = keys.length > 0;
  }

  function apply(event) {
    const change = JSON.parse(event.data);
    if (change.head) head(change.head);
    for (const [id, one] of Object.entries(change.sections || {})) table(id, one);
    document.body.dataset.live = 'yes';
  }

  // A browser has six connections to a server, so a page that is not visible has none. The browser connects again by itself
  // when a connection is lost, and not when the server has refused it.
  const refused = 5000;
  let source = null;
  function connect() {
    if (source || document.hidden) return;
    const now = new EventSource(stream);
    source = now;
    now.onopen = () => { byId('connection').textContent = ''; };
    now.onerror = () => {
      byId('connection').textContent = 'Not connected: what is shown may be old.';
      if (now.readyState !== EventSource.CLOSED) return;
      if (source === now) source = null;
      setTimeout(connect, refused);
    };
    now.onmessage = apply;
  }
  function disconnect() {
    if (source) source.close();
    source = null;
  }
  document.addEventListener('visibilitychange', () => { if (document.hidden) disconnect(); else connect(); });
  connect();
})();
