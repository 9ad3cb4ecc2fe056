"use strict";
/* Shows openapi.json as a plain page. */

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function resolve(all, schema) {
  return schema && schema.$ref ? schema.$ref.slice(2).split("/").reduce((at, key) => at[key], all) : schema || {};
}

function typeOf(all, schema) {
  const { title, ...rest } = schema || {};
  if (rest.$ref) return `{${Object.keys(resolve(all, rest).properties || {}).join(", ")}}`;
  if (rest.anyOf) return [...new Set(rest.anyOf.map(one => typeOf(all, one)))].join(" | ");
  if (rest.enum) return rest.enum.map(one => JSON.stringify(one)).join(" | ");
  if (rest.const !== undefined) return JSON.stringify(rest.const);
  if (rest.type === "array") return `[${typeOf(all, rest.items)}, …]`;
  return rest.type || "any";
}

function table(all, schema, required) {
  const rows = Object.entries(schema.properties || {}).map(([name, one]) => {
    const must = !required ? "" : (schema.required || []).includes(name) ? "Required." : one.default == null ? "" : `Default: ${JSON.stringify(one.default)}.`;
    return element("tr", "", element("td", "", element("code", name)), element("td", "", element("code", typeOf(all, one))),
      element("td", [one.description, must].filter(Boolean).join(" ").replaceAll("`", "")));
  });
  return element("table", "", ...rows);
}

function bodyOf(all, content, required = false) {
  const json = content && content["application/json"];
  return json ? [table(all, resolve(all, json.schema), required)] : [];
}

async function show() {
  const all = await (await fetch("openapi.json", { credentials: "omit" })).json();
  document.getElementById("about").textContent = `API, version ${all.info.version}`;
  document.getElementById("description").textContent = all.info.description;
  const routes = document.getElementById("routes");
  for (const [path, methods] of Object.entries(all.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      const others = Object.keys(route.responses).filter(code => code !== "200").join(", ");
      const answer = bodyOf(all, route.responses["200"].content);
      routes.append(element("article", "",
        element("h2", `${method.toUpperCase()} ${path}`),
        element("p", route.description + (route.security ? " Needs the token." : "")),
        ...(route.requestBody ? [element("h3", "Body"), ...bodyOf(all, route.requestBody.content, true)] : []),
        ...(answer.length ? [element("h3", "Answer"), ...answer] : []),
        element("p", others ? `Errors: ${others}` : "")));
    }
  }
}
show().catch(() => { document.getElementById("description").textContent = "openapi.json cannot be read."; });
