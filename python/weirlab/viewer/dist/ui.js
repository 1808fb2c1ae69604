/*! Made of viewer/ of Weir (MIT OR Apache-2.0), and of:

uplot:
The MIT License (MIT)

Copyright (c) 2022 Leon Sorokin

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
hyparquet:
The MIT License (MIT)

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

fzstd:
MIT License

Copyright (c) 2020 Arjun Barrett

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
"use strict";(()=>{function E(e,o={},...a){let n=document.createElement(e);for(let[i,d]of Object.entries(o))n.setAttribute(i,d);return n.append(...a.filter(i=>i!==null)),n}var m=JSON.parse(document.getElementById("weir-page")?.textContent??"{}");function s(e){let o=document.getElementById(e);if(o===null)throw new Error(`the page has no ${e}`);return o}var h=e=>`${m.prefix}/view?${e.map(o=>`record=${encodeURIComponent(o)}`).join("&")}`;async function w(e,o){return await(await fetch(`${m.prefix}/${e}`,{method:"POST",headers:{"content-type":"application/json"},body:JSON.stringify(o)})).json()}function L(){let e=[...document.querySelectorAll("#rows tr")],o=s("search"),a=s("since"),n=["test","link","world"].map(t=>s(t)),i=s("open"),d=s("command"),l=d.textContent,g=e.map(t=>(t.textContent??"").toLowerCase()),r=()=>{let t=o.value.toLowerCase().split(/\s+/).filter(Boolean),b=0;e.forEach((f,y)=>{let v=t.every(p=>g[y]?.includes(p))&&n.every(p=>!p.value||f.dataset[p.id]===p.value)&&(!a.value||(f.dataset.date??"")>=a.value);f.hidden=!v,v&&b++}),s("count").textContent=`${b} shown`},c=()=>e.filter(t=>t.querySelector("input")?.checked).map(t=>t.dataset.place??""),u=()=>{let t=c();i.disabled=t.length===0,i.textContent=t.length>1?`Compare ${t.length}`:"Open",d.textContent=t.length?`weir report ${t.map(T).join(" ")}`:l};for(let t of[o,a,...n])t.addEventListener("input",r);for(let t of e)t.querySelector("input")?.addEventListener("change",u),t.querySelector("a")?.setAttribute("href",h([t.dataset.place??""]));i.addEventListener("click",()=>location.assign(h(c()))),r(),u()}function T(e){return/^[\w@%+=:,./-]+$/.test(e)?e:`'${e.replaceAll("'",`'"'"'`)}'`}function x(){let e=s("form"),o=s("start"),a=s("error"),n=()=>{let r=new FormData(e),c={};for(let u of new Set(r.keys()))c[u]=u==="queue"?r.getAll(u):r.get(u);return c},i=r=>{a.hidden=r===void 0,a.textContent=r===void 0?"":String(r),o.disabled=r!==void 0},d=0,l=async()=>{let r=++d,c=await w("check",n());r===d&&(i(c.error),s("command").textContent=String(c.command??""))},g=0;e.addEventListener("input",()=>{clearTimeout(g),g=setTimeout(()=>{l()},250)}),e.addEventListener("submit",r=>{r.preventDefault(),o.disabled=!0,w("start",n()).then(c=>{c.error===void 0?location.assign(`${m.prefix}/runs/${String(c.number)}`):i(c.error)})}),l()}function $(){let e=s("stop");e.addEventListener("click",()=>{w(`runs/${m.number}/stop`,{})});let o=async()=>{let n=await(await fetch(`${m.prefix}/runs/${m.number}/state`)).json();s("output").textContent=n.lines.join(`
`);let i=n.records.filter(l=>l.complete).length;s("progress").value=i,s("state").textContent=n.code===null?`under way: ${i} records are complete`:n.code===0?"done":`ended with exit code ${n.code}`;let d=n.records.map(l=>l.place).sort();if(d.length){let l=n.code===null?"Look at what there is so far":"Open the records";s("made").replaceChildren(E("a",{href:h(d.slice(0,24))},l))}n.code===null?setTimeout(()=>{o()},700):e.disabled=!0};o()}var k={records:L,new:x,run:$};k[m.page]?.();})();
