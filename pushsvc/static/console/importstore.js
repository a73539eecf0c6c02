// Keeps in this browser how far an import has come, and its refused rows, so that it can go on after
// the tab was closed. Refused rows are Blobs, which a browser keeps on disk.
(() => {
  const NAME = "pushsvc-imports";
  const DAYS = 7;

  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });

  function opened() {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("imports");
      request.result.createObjectStore("refused", { autoIncrement: true }).createIndex("of", "of");
    };
    return done(request);
  }

  // If the browser keeps nothing for this site: as long as the page is open.
  function inMemory() {
    let state = null;
    let blobs = [];
    return {
      read: async () => state,
      write: async (given, rows = "") => {
        state = given;
        if (rows) blobs.push(new Blob([rows]));
      },
      remove: async () => {
        state = null;
        blobs = [];
      },
      refused: async () => blobs,
    };
  }

  // One import for each user and channel, under `key`.
  async function storeOf(key) {
    let database;
    try {
      database = await opened();
    } catch {
      return inMemory();
    }

    async function changed(change) {
      const transaction = database.transaction(["imports", "refused"], "readwrite");
      await change(transaction.objectStore("imports"), transaction.objectStore("refused"));
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
    }

    async function removeIn(imports, refused, of) {
      imports.delete(of);
      for (const each of await done(refused.index("of").getAllKeys(of))) refused.delete(each);
    }

    return {
      // What was written last; null if that was long ago.
      async read() {
        await changed(async (imports, refused) => {
          const oldest = Date.now() - DAYS * 24 * 3600 * 1000;
          for (const each of await done(imports.getAllKeys())) {
            const { at } = await done(imports.get(each));
            if (at < oldest) await removeIn(imports, refused, each);
          }
        });
        const imports = database.transaction("imports").objectStore("imports");
        return (await done(imports.get(key))) ?? null;
      },

      // Replaces the state, and adds refused rows, both or neither.
      write: (state, rows = "") =>
        changed((imports, refused) => {
          imports.put({ ...state, at: Date.now() }, key);
          if (rows) refused.add({ of: key, rows: new Blob([rows]) });
        }),

      remove: () => changed((imports, refused) => removeIn(imports, refused, key)),

      async refused() {
        const refused = database.transaction("refused").objectStore("refused");
        return (await done(refused.index("of").getAll(key))).map(({ rows }) => rows);
      },
    };
  }

  window.pushsvcImportStore = { storeOf };
})();
