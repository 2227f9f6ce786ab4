--- Trim: a text without the blanks around it.

---@param text string
---@return string
return function(text)
  return text:find('%S') and vim.trim(text) or ''
end
