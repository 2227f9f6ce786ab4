local p = require('tools_project')
local runner_project = require('runner_project')
local t = require('helpers')

before_each(runner_project.open)
after_each(p.close)

it('workflow_list lists command files, targets and scripts with their descriptions', function()
  p.write('.claude/commands/fix.md', '---\ndescription: "Fix it"\n---\nText\n')
  p.write('.claude/commands/git/commit.md', '# Commit all\n')
  p.write('.claude/skills/pdf/SKILL.md', '---\nname: pdf\ndescription: Reads PDF\n---\n')
  p.write('.claude/skills/pdf/reference.md', 'x')
  p.write('.agents/commands/secret.md', 'x')
  p.write('.agents/workflows/deploy.md', '')
  vim.uv.fs_symlink(p.write(p.base .. '/outside.md', 'outside'), p.root .. '/.agents/commands/link.md')
  p.write('Makefile', 'build: a b ## Build all\n\tx\n.PHONY: build\n')
  p.write('package.json', '{"scripts": {"lint": "eslint ."}}')
  local found = p.ok('workflow_list')
  local lines = vim.tbl_map(
    function(each) return ('%s %s|%s|%s'):format(each.kind, each.name, each.path, each.description) end,
    found.workflows
  )
  t.eq({
    'command fix|.claude/commands/fix.md|Fix it',
    'command git:commit|.claude/commands/git/commit.md|Commit all',
    'skill pdf|.claude/skills/pdf/SKILL.md|Reads PDF',
    'command secret|.agents/commands/secret.md|x',
    'command deploy|.agents/workflows/deploy.md|nil',
    'make build|Makefile|Build all',
    'npm lint|package.json|eslint .',
  }, lines)
  t.eq({ { path = '.agents/commands/link.md', why = 'outside the project' } }, found.withheld)
  t.matches(
    '^7 workflows; 2%-2 shown, offset=2 continues\n'
      .. 'command git:commit %(.claude/commands/git/commit.md%): Commit all\n'
      .. 'withheld: .agents/commands/link.md: outside the project$',
    (p.text('workflow_list', { limit = 1, offset = 1 }))
  )
  local page = p.ok('workflow_list', { limit = 2, offset = 1 })
  t.eq({ 2, 7, 3 }, { #page.workflows, page.total, page.next_offset })
  vim.fn.delete(p.root, 'rf')
  vim.fn.mkdir(p.root .. '/.git', 'p')
  t.eq({ 0, {} }, { p.ok('workflow_list').total, p.ok('workflow_list').workflows })
end)
