-- Runs luacheck inside Neovim: `nvim -l scripts/_luacheck.lua LUACHECK_TREE [luacheck's arguments]`.

local tree = table.remove(_G.arg, 1)
package.path = ('%s/usr/share/lua/5.1/?.lua;%s/usr/share/lua/5.1/?/init.lua;%s'):format(tree, tree, package.path)

package.preload['lfs'] = function()
  local lfs = { _VERSION = 'LuaFileSystem (vim.uv)', currentdir = vim.uv.cwd }

  function lfs.attributes(path, name)
    local stat, err = vim.uv.fs_stat(path)
    if not stat then
      return nil, err
    end
    local attributes = { mode = stat.type, modification = stat.mtime.sec }
    return name and attributes[name] or attributes
  end

  function lfs.dir(path)
    local handle = assert(vim.uv.fs_scandir(path))
    return function()
      return (vim.uv.fs_scandir_next(handle))
    end
  end

  function lfs.mkdir(path)
    return vim.uv.fs_mkdir(path, 448)
  end

  return lfs
end

require('luacheck.main') ---@diagnostic disable-line: unresolved-require
