import { parse } from './json.js';

// The form that puts and deletes resources of a watch that can be written. A
// resource that was chosen from the table is written only if it still has the
// revision that was chosen.
export class Writing {
  watch = '';
  chosen = null;

  constructor(form, key, value, remove, said) {
    Object.assign(this, { form, key, value, said });
    form.addEventListener('submit', (e) => { e.preventDefault(); this.put(); });
    form.addEventListener('reset', () => { this.chosen = null; said.textContent = ''; });
    remove.addEventListener('click', () => key.reportValidity() && this.write('DELETE'));
  }

  choose(row) {
    this.chosen = row;
    this.key.value = row.key;
    this.value.value = JSON.stringify(row.value, null, 1);
    this.said.textContent = `Revision ${row.revision}: written only if it has not changed meanwhile.`;
    this.value.focus();
  }

  put() {
    const body = this.value.value;
    try {
      JSON.parse(body);
    } catch (error) {
      this.said.textContent = `The value is not JSON (text wants quotation marks): ${error.message}`;
      return;
    }
    this.write('PUT', body);
  }

  async write(method, body) {
    const key = this.key.value;
    const same = this.chosen?.key === key ? this.chosen : null;
    const headers = same ? { 'If-Match': `"${same.revision}"` } : {};
    this.said.textContent = '…';
    try {
      const response = await fetch(this.urlOf(key, same?.key_encoding), { method, headers, body });
      const answer = parse(await response.text());
      if (!response.ok) throw new Error(answer.detail);
      this.chosen = null;
      this.said.textContent = wrote(method, response.status, answer);
    } catch (error) {
      this.said.textContent = `Not written: ${error.message}`;
    }
  }

  // A key may hold any character; "." and ".." alone would be lost in a URL.
  urlOf(key, encoding) {
    const url = `v1/watches/${encodeURIComponent(this.watch)}/resources/`;
    if (!encoding && key !== '.' && key !== '..') return url + encodeURIComponent(key);
    return `${url}${encodeURIComponent(encoding ? key : btoa(key))}?key_encoding=base64`;
  }
}

function wrote(method, status, answer) {
  if (method === 'DELETE') return answer.deleted ? 'Deleted.' : 'There was nothing to delete.';
  return `${status === 201 ? 'Created' : 'Replaced'} at revision ${answer.revision}.`;
}
