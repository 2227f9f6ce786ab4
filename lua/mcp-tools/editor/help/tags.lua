--- Help tags: the index of all help files on the runtimepath, read beside the main loop and kept as long as its files
--- stay as they are.
---
--- Receives: nothing.
--- Sends: names of topics, each with the file that it stands in.
--- Does not know about: what the files say, who asks.

local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.files.read')
local trim = require('mcp-tools.util.trim')

local uv = vim.uv

local M = {}

--- The largest index there is has a tenth of it.
local MAX_BYTES = 8 * 1024 * 1024

---@class mcp-tools.HelpTag
---@field tag string
---@field file string path

---@type table<string, { stamp: string, tags: mcp-tools.HelpTag[] }>
local known = {}

--- May a file of a plugin be read? It lies outside of the project, and is no secret because of that. When the plugin is
--- the project itself, none that a link leads to elsewhere.
---@param path string
---@param root string
---@return mcp-tools.Judge
function M.judge(path, root)
  local is_own = vim.iter(vim.fs.parents(vim.fn.fnamemodify(path, ':p'))):any(function(folder)
    return paths.inside((paths.resolve(folder)), root)
  end)
  return function(real)
    return not paths.sensitive(real) and (not is_own or paths.inside(real, root))
  end
end

--- Is it a name below the folder of the index?
---@param file string
---@return boolean
local function is_below(file)
  return not ('/' .. file .. '/'):find('/../', 1, true)
end

---@param text string
---@param folder string
---@param pause fun()
---@return mcp-tools.HelpTag[]
local function parse(text, folder, pause)
  local list = {}
  for line in text:gmatch('[^\n]+') do
    local tag, file = line:match('^([^\t]+)\t([^\t]+)\t')
    if tag and tag:sub(1, 1) ~= '!' and is_below(file) then
      list[#list + 1] = { tag = tag, file = folder .. '/' .. file }
    end
    if #list % 500 == 0 then
      pause()
    end
  end
  return list
end

---@param ctx mcp-tools.Ctx in a coroutine
---@param path string
---@param pause fun()
---@return mcp-tools.HelpTag[]
local function tags_of(ctx, path, pause)
  local stat = ctx:await(function(done)
    uv.fs_stat(path, function(_, found)
      vim.schedule(function()
        done(found)
      end)
    end)
  end)
  local stamp = stat and ('%d.%d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size)
  if known[path] and known[path].stamp == stamp then
    return known[path].tags
  end
  local text = ctx:await(function(done)
    read.read(path, MAX_BYTES, done, M.judge(path, ctx.root))
  end)
  local list = text and parse(text, vim.fs.dirname(path), pause) or {}
  known[path] = stamp and { stamp = stamp, tags = list } or nil
  return list
end

--- All of them, in the order of the runtimepath.
---@param ctx mcp-tools.Ctx in a coroutine
---@param pause fun()
---@return mcp-tools.HelpTag[][] by index
function M.all(ctx, pause)
  local lists = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/tags', true)) do
    table.insert(lists, tags_of(ctx, path, pause))
  end
  return lists
end

--- How well a topic fits: less is better.
---@param tag string
---@param wanted string
---@param words string[] of it, in small letters
---@return integer?
local function rank(tag, wanted, words)
  if tag == wanted then
    return 0
  end
  local small, plain = tag:lower(), wanted:lower()
  -- An option, a command and a function are often asked for without what marks them.
  local bare = small:match("^'(.*)'$") or small:match('^:(.*)$') or small:match('^(.*)%(%)$') or small
  if small == plain then
    return 1
  elseif bare == plain then
    return 2
  end
  for _, word in ipairs(words) do
    if not small:find(word, 1, true) then
      return nil
    end
  end
  return vim.startswith(small, plain) and 3 or 4
end

--- Topics that fit, the best first, and the shortest of those.
---@param lists mcp-tools.HelpTag[][]
---@param wanted string
---@param pause fun()
---@return mcp-tools.HelpTag[]
function M.find(lists, wanted, pause)
  -- By rank and length at once: to sort ten thousand of them would take too long in one go.
  local words, order, heaps = vim.split(trim(wanted:lower()), '%s+'), {}, {}
  for _, list in ipairs(lists) do
    for i, each in ipairs(list) do
      local fit = rank(each.tag, wanted, words)
      local key = fit and fit * 1e6 + #each.tag
      if key and not heaps[key] then
        heaps[key] = {}
        table.insert(order, key)
      end
      if key then
        table.insert(heaps[key], each)
      end
      if i % 500 == 0 then
        pause()
      end
    end
  end
  table.sort(order)
  local found = {}
  for _, key in ipairs(order) do
    vim.list_extend(found, heaps[key])
  end
  return found
end

return M
